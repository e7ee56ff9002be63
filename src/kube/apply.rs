//! Manifests: which of them the cluster does not have as they are, and server-side apply.

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::Resource;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use serde_json::Value;

use super::MANAGER;
use super::client::Client;
use crate::error::{Code, Error, Result};

/// What we may do, as shipped in config/rbac.yaml.
const RBAC: &str = include_str!("../../config/rbac.yaml");

/// One object, with its API.
#[derive(Debug, Clone)]
pub struct Manifest {
    pub kind: String,
    pub name: String,
    pub namespace: Option<String>,
    pub body: Value,
    resource: ApiResource,
}

impl Manifest {
    /// `role kube-system/refloat-cp1`.
    pub fn shown(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{} {namespace}/{}", self.kind, self.name),
            None => format!("{} {}", self.kind, self.name),
        }
    }

    fn api(&self, client: &Client) -> Api<DynamicObject> {
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(client.inner(), namespace, &self.resource),
            None => Api::all_with(client.inner(), &self.resource),
        }
    }

    /// Whether the cluster has all of it as it is.
    pub async fn is_there(&self, client: &Client) -> Result<bool> {
        let what = format!("read {}", self.shown());
        let found = client.call(&what, self.api(client).get_opt(&self.name)).await?;
        let Some(found) = found else { return Ok(false) };
        let live = serde_json::to_value(found).map_err(|e| Error::new(Code::Internal, &*what, "").because(e))?;
        Ok(covers(&live, &self.body))
    }

    /// Makes it so. Fields that somebody else has set otherwise are ours.
    pub async fn apply(&self, client: &Client) -> Result<()> {
        let params = PatchParams::apply(MANAGER).force();
        let api = self.api(client);
        let body = Patch::Apply(&self.body);
        client.call(&format!("apply {}", self.shown()), api.patch(&self.name, &params, &body)).await.map(drop)
    }
}

/// The roles of user refloat, with those of this node.
pub fn rbac(node: &str) -> Result<Vec<Manifest>> {
    // A node's name has no letter that YAML or a regular expression would take for something else.
    let text = RBAC.replace("NODE", node);
    // What stands before the first `---` is the note, and an object.
    text.split("\n---\n").map(manifest).collect()
}

fn manifest(text: &str) -> Result<Manifest> {
    let broken = |why: String| Error::new(Code::Internal, "read the manifest of refloat's roles", "").because(why);
    let body: Value = serde_saphyr::from_str(text).map_err(|e| broken(e.to_string()))?;
    let field = |value: &Value| value.as_str().map(str::to_string);
    let kind = field(&body["kind"]).ok_or_else(|| broken("an object without a kind".into()))?;
    let name = field(&body["metadata"]["name"]).ok_or_else(|| broken("an object without a name".into()))?;
    let resource = match kind.as_str() {
        "ClusterRole" => resource_of::<ClusterRole>(),
        "ClusterRoleBinding" => resource_of::<ClusterRoleBinding>(),
        "Role" => resource_of::<Role>(),
        "RoleBinding" => resource_of::<RoleBinding>(),
        other => return Err(broken(format!("{other} is no part of it"))),
    };
    Ok(Manifest { namespace: field(&body["metadata"]["namespace"]), kind, name, body, resource })
}

fn resource_of<K: Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<K>(&())
}

/// Whether everything in `wanted` is in `live`; lists have to be the same.
fn covers(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            wanted.iter().all(|(key, value)| live.get(key).is_some_and(|there| covers(there, value)))
        }
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| covers(live, wanted))
        }
        (live, wanted) => live == wanted,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_shipped_manifest_gives_what_it_says_and_no_more() {
        let all = rbac("cp-1.x").unwrap();
        let shown: Vec<String> = all.iter().map(Manifest::shown).collect();
        assert_eq!(
            shown,
            [
                "ClusterRole refloat",
                "ClusterRoleBinding refloat",
                "Role kube-node-lease/refloat",
                "RoleBinding kube-node-lease/refloat",
                "Role kube-system/refloat-cp-1.x",
                "RoleBinding kube-system/refloat-cp-1.x",
            ]
        );
        for one in &all {
            assert!(!one.body.to_string().contains("NODE") && one.body["apiVersion"] == "rbac.authorization.k8s.io/v1");
            match one.body.get("rules") {
                // Nothing may be deleted, and nothing but Leases and health paths be touched.
                Some(rules) => {
                    let text = rules.to_string();
                    for never in ["*", "delete", "secrets", "pods", "escalate", "bind", "impersonate", "list\",\"watch"]
                    {
                        assert!(!text.contains(never), "{}: {never}", one.shown());
                    }
                    for rule in rules.as_array().unwrap() {
                        let leases = rule["resources"] == json!(["leases"]);
                        assert!(
                            leases || rule["nonResourceURLs"] == json!(["/livez", "/readyz", "/metrics"]),
                            "{rule}"
                        );
                    }
                }
                None => {
                    assert_eq!(one.body["subjects"][0]["name"], super::super::USER);
                    assert_eq!(one.body["roleRef"]["name"], one.name);
                }
            }
        }
    }

    #[test]
    fn what_the_cluster_adds_is_no_difference() {
        let wanted = json!({ "metadata": { "name": "a" }, "rules": [{ "verbs": ["get"] }] });
        for (live, same) in [
            (json!({ "metadata": { "name": "a", "uid": "x" }, "rules": [{ "verbs": ["get"] }] }), true),
            (json!({ "metadata": { "name": "a" }, "rules": [{ "verbs": ["get", "list"] }] }), false),
            (json!({ "metadata": { "name": "a" }, "rules": [] }), false),
            (json!({ "metadata": { "name": "a" } }), false),
            (json!({ "metadata": { "name": "b" }, "rules": [{ "verbs": ["get"] }] }), false),
        ] {
            assert_eq!(covers(&live, &wanted), same, "{live}");
        }
    }
}
