//! What was discovered becomes configuration, credentials and running services (design §5): a plan, then the act.
