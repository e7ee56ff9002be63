//! What an error of a call means.

use std::error::Error as StdError;

use crate::error::{Code, Error};

/// A call that came back with an error. `of`: the apiserver's URL.
pub(super) fn told(error: kube::Error, what: &str, of: &str) -> Error {
    if let kube::Error::Api(status) = &error {
        let said = match status.message.as_str() {
            "" => format!("status {}", status.code),
            message => message.to_string(),
        };
        let error = |code| Error::new(code, what, of).because(said.clone());
        return match status.code {
            401 => error(Code::Permission).remedy("the certificate or token is refused: run `refloat setup` again"),
            403 => error(Code::Permission).remedy("see which roles the user has: config/rbac.yaml is what it needs"),
            404 => error(Code::NotFound),
            409 if status.reason == "AlreadyExists" => error(Code::AlreadyExists),
            409 => error(Code::PlanChanged),
            400 | 405 | 415 | 422 => error(Code::Internal),
            _ => error(Code::ApiserverFailed).remedy("see the log of that apiserver"),
        };
    }
    let error = Error::new(Code::ApiserverFailed, what, of).because(chain(&error));
    error.remedy("does it run, is this its address, and is its certificate signed by the authority in the kubeconfig?")
}

/// No answer within the deadline.
pub(super) fn silent(what: &str, of: &str, limit: std::time::Duration) -> Error {
    Error::new(Code::ApiserverFailed, what, of)
        .because(format!("no answer within {limit:?}"))
        .remedy("look at the apiserver and at the etcd behind it")
}

/// All causes on one line: the outermost says least.
pub(super) fn chain(error: &dyn StdError) -> String {
    let mut text: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let said = error.to_string();
        if text.last().is_none_or(|last| !last.contains(&said)) {
            text.push(said);
        }
        next = error.source();
    }
    text.join(": ")
}
