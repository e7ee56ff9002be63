//! Text that compresses about as well as what is found in Kubernetes clusters.

use super::super::rng::Rng;

const WORDS: [&str; 48] = [
    "annotations",
    "capabilities",
    "configMap",
    "container",
    "controller",
    "default",
    "deployment",
    "endpoints",
    "environment",
    "failureThreshold",
    "finalizers",
    "generation",
    "healthcheck",
    "hostPath",
    "image",
    "ingress",
    "kubernetes.io/metadata.name",
    "labels",
    "limits",
    "livenessProbe",
    "memory",
    "metadata",
    "mountPath",
    "namespace",
    "node-role.kubernetes.io/control-plane",
    "nodeSelector",
    "observedGeneration",
    "ownerReferences",
    "periodSeconds",
    "persistentVolumeClaim",
    "podAntiAffinity",
    "priorityClassName",
    "projected",
    "readOnly",
    "replicas",
    "requests",
    "resourceVersion",
    "restartPolicy",
    "securityContext",
    "selector",
    "serviceAccountName",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologyKey",
    "updateStrategy",
    "volumeMounts",
    "volumes",
    "webhooks.example.org",
];

/// Words and random numbers, `size` bytes; zstd at level 1 makes it about a third.
pub fn text(rng: &mut Rng, size: usize) -> String {
    let mut text = String::with_capacity(size + 64);
    while text.len() < size {
        text.push_str(rng.pick::<&str>(&WORDS));
        text.push_str(": ");
        text.push_str(&rng.hex(12));
        text.push('\n');
    }
    text.truncate(size);
    text
}
