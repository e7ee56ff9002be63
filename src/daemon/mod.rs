//! The composition root of `refloat daemon`: builds the parts, owns the tasks, drains them.
