//! Which prefix a key is counted under.

/// How many parts of a path tell keys apart that are not Kubernetes'.
const PARTS: usize = 2;

const KUBERNETES: &[u8] = b"/registry/";

/// The path of the key without its last part, cut to its first `depth` parts: `/registry/pods/kube-system` for a pod,
/// `/registry/clusterroles` for what has no namespace. Without a depth the paths of Kubernetes keep all parts, others
/// the first two. Empty for a key without a path.
pub fn of(key: &[u8], depth: Option<usize>) -> &[u8] {
    let end = key.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    let path = &key[..end];
    let depth = match depth {
        Some(depth) => depth,
        None if key.starts_with(KUBERNETES) => return path,
        None => PARTS,
    };
    // The slash that a path begins with is not the end of a part.
    let slashes = path.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/');
    match slashes.map(|(at, _)| at).nth(depth.saturating_sub(1)) {
        Some(at) if depth > 0 => &path[..at],
        _ if depth == 0 => b"",
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cut() {
        for (key, depth, expected) in [
            ("/registry/pods/kube-system/coredns-1", None, "/registry/pods/kube-system"),
            ("/registry/clusterroles/admin", None, "/registry/clusterroles"),
            ("/registry/cilium.io/ciliumnodes/n1", None, "/registry/cilium.io/ciliumnodes"),
            ("/registry/services/specs/default/kubernetes", None, "/registry/services/specs/default"),
            ("/registry/pods/kube-system/coredns-1", Some(2), "/registry/pods"),
            ("/registry/pods/kube-system/coredns-1", Some(1), "/registry"),
            ("/registry/pods/kube-system/coredns-1", Some(9), "/registry/pods/kube-system"),
            ("/registry/pods/kube-system/coredns-1", Some(0), ""),
            ("/a/b/c/d/e", None, "/a/b"),
            ("a/b/c/d/e", None, "a/b"),
            ("a/b", None, "a"),
            ("/a", None, ""),
            ("plain", None, ""),
            ("plain", Some(1), ""),
            ("", None, ""),
            ("/", None, ""),
            ("//x", None, "/"),
            ("/a//b/c", Some(2), "/a/"),
        ] {
            assert_eq!(of(key.as_bytes(), depth), expected.as_bytes(), "{key} {depth:?}");
        }
    }
}
