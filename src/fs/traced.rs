//! The one word by which code here tells a running trace what it did.

/// Passes a call on to the running traces; nothing where they are not compiled in.
macro_rules! trace {
    ($($call:tt)*) => {
        #[cfg(any(test, feature = "failpoints"))]
        $crate::fs::trace::$($call)*;
    };
}

pub(super) use trace;
