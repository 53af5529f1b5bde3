//! Every operation of the Queue service, by the name the REST reference gives it.

use auth::{Need, ResourceType, Service};

service::operations! {
    // The service.
    ListQueues,
    GetQueueServiceProperties,
    SetQueueServiceProperties,
    GetQueueServiceStats,
    GetUserDelegationKey,
    PreflightQueueRequest,
    // Queues.
    CreateQueue,
    DeleteQueue,
    GetQueueMetadata,
    SetQueueMetadata,
    GetQueueAcl,
    SetQueueAcl,
    // Messages.
    PutMessage,
    GetMessages,
    PeekMessages,
    ClearMessages,
    UpdateMessage,
    DeleteMessage,
}

impl Op {
    /// The permission that a shared access signature must have. (The holder of the account key may do everything.)
    #[must_use]
    pub fn needs(self) -> Need {
        let service = |letters| Need::new(Service::Queue, ResourceType::Service, letters).account_sas_only();
        let queue = |letters| Need::new(Service::Queue, ResourceType::Container, letters);
        let message = |letters| Need::new(Service::Queue, ResourceType::Object, letters);
        match self {
            Op::ListQueues => service("l"),
            Op::GetQueueServiceProperties | Op::GetQueueServiceStats => service("r"),
            Op::SetQueueServiceProperties => service("w"),
            Op::GetUserDelegationKey => service("").only_by_bearer(),
            // A browser sends the preflight without credentials.
            Op::PreflightQueueRequest => service(""),
            Op::CreateQueue => queue("cw").account_sas_only(),
            Op::DeleteQueue => queue("d").account_sas_only(),
            Op::GetQueueMetadata => queue("r"),
            Op::SetQueueMetadata => queue("w").account_sas_only(),
            Op::GetQueueAcl | Op::SetQueueAcl => queue("").never_by_sas().never_by_bearer(),
            Op::PutMessage => message("a"),
            Op::GetMessages | Op::DeleteMessage => message("p"),
            Op::PeekMessages => message("r"),
            Op::ClearMessages => message("d").account_sas_only(),
            Op::UpdateMessage => message("u"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use auth::{Permissions, SasUse};
    use std::collections::BTreeSet;

    /// The second column of the Queue service's lines in a file under `docs`.
    fn names(file: &str) -> BTreeSet<String> {
        let path = format!("{}/../../docs/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let ours = text.lines().filter_map(|line| line.strip_prefix("queue\t"));
        ours.filter_map(|line| line.split('\t').next()).map(str::to_owned).collect()
    }

    #[test]
    fn there_is_one_op_for_each_published_operation_and_none_is_missing() {
        assert_eq!(Op::ALL.iter().map(|op| op.name().to_owned()).collect::<BTreeSet<_>>(), names("operations.txt"));
        assert_eq!(names("not-yet.txt"), BTreeSet::new());
    }

    #[test]
    fn what_a_signature_for_a_queue_allows() {
        for op in Op::ALL {
            let need = op.needs();
            let letters = match op {
                Op::GetQueueMetadata | Op::PeekMessages => "r",
                Op::PutMessage => "a",
                Op::UpdateMessage => "u",
                Op::GetMessages | Op::DeleteMessage => "p",
                _ => {
                    assert_ne!(need.sas, SasUse::Any, "{}", op.name());
                    continue;
                }
            };
            assert_eq!((need.sas, need.any_of), (SasUse::Any, Permissions::of(letters)), "{}", op.name());
        }
    }
}
