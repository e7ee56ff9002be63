//! What runs on this node, read from its files: etcd, the apiserver, their certificates (design §5).
//!
//! In: the root of a file system. Out: findings, each with the file that it was read from. Changes nothing.
