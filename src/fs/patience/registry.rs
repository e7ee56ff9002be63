//! Which calls are out, by place.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use super::Call;

/// Places are few: the stores and the state directory of one configuration.
static PLACES: LazyLock<Mutex<HashMap<String, Arc<Place>>>> = LazyLock::new(Mutex::default);

/// Calls on one place that have not come back.
#[derive(Debug, Default)]
pub struct Place {
    calls: Mutex<Vec<Arc<Call>>>,
}

impl Place {
    pub fn of(key: &str) -> Arc<Place> {
        let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
        match places.get(key) {
            Some(place) => place.clone(),
            None => places.entry(key.into()).or_default().clone(),
        }
    }

    fn calls(&self) -> MutexGuard<'_, Vec<Arc<Call>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a call; or, where one is stuck, gives that one, and keeps `work` for it to drop: what the work holds may
    /// hang as well.
    pub fn enter<W: Send + 'static>(&self, call: &Arc<Call>, work: W) -> Result<W, Arc<Call>> {
        let mut calls = self.calls();
        match calls.iter().find(|c| c.overdue()) {
            None => {
                calls.push(call.clone());
                Ok(work)
            }
            Some(stuck) => {
                stuck.late.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(work));
                Err(stuck.clone())
            }
        }
    }

    /// One that came back, with what was kept for it.
    #[must_use]
    pub fn leave(&self, call: &Arc<Call>) -> Vec<Box<dyn Any + Send>> {
        self.calls().retain(|c| !Arc::ptr_eq(c, call));
        std::mem::take(&mut *call.late.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn stuck(&self) -> Option<Arc<Call>> {
        self.calls().iter().find(|c| c.overdue()).cloned()
    }
}
