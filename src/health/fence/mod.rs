//! Taking this node's path out of the balancer. [`decide`](mod@decide) is the rule, pure; [`proof`] the difference that it needs.

pub mod decide;
pub mod proof;
#[cfg(test)]
mod tests;
