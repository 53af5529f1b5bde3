//! Every operation of the Table service, by the name the REST reference gives it.

use auth::{Need, ResourceType, Service};

service::operations! {
    // The service.
    GetTableServiceProperties,
    SetTableServiceProperties,
    GetTableServiceStats,
    PreflightTableRequest,
    // Tables.
    QueryTables,
    CreateTable,
    DeleteTable,
    GetTableAcl,
    SetTableAcl,
    // Entities.
    QueryEntities,
    InsertEntity,
    UpdateEntity,
    MergeEntity,
    InsertOrReplaceEntity,
    InsertOrMergeEntity,
    DeleteEntity,
    EntityGroupTransaction,
}

impl Op {
    /// The permission that a shared access signature must have. (The holder of the account key may do everything.)
    #[must_use]
    pub fn needs(self) -> Need {
        let service = |letters| Need::new(Service::Table, ResourceType::Service, letters).account_sas_only();
        let table = |letters| Need::new(Service::Table, ResourceType::Container, letters).account_sas_only();
        let entity = |letters| Need::new(Service::Table, ResourceType::Object, letters);
        match self {
            Op::GetTableServiceProperties | Op::GetTableServiceStats => service("r"),
            Op::SetTableServiceProperties => service("w"),
            // A browser sends the preflight without credentials.
            Op::PreflightTableRequest => service(""),
            Op::QueryTables => table("l"),
            Op::CreateTable => table("cw"),
            Op::DeleteTable => table("d"),
            Op::GetTableAcl | Op::SetTableAcl => table("").never_by_sas().never_by_bearer(),
            Op::QueryEntities => entity("r"),
            Op::InsertEntity => entity("a"),
            Op::UpdateEntity | Op::MergeEntity => entity("u"),
            Op::InsertOrReplaceEntity | Op::InsertOrMergeEntity => entity("").all_of("au"),
            Op::DeleteEntity => entity("d"),
            // The permission for each operation of a transaction is checked by the transaction.
            Op::EntityGroupTransaction => entity(""),
        }
    }

    /// Whether requests and answers are XML. The operations on entities and tables use JSON.
    #[must_use]
    pub fn speaks_xml(self) -> bool {
        match self {
            Op::GetTableServiceProperties
            | Op::SetTableServiceProperties
            | Op::GetTableServiceStats
            | Op::PreflightTableRequest
            | Op::GetTableAcl
            | Op::SetTableAcl => true,
            Op::QueryTables
            | Op::CreateTable
            | Op::DeleteTable
            | Op::QueryEntities
            | Op::InsertEntity
            | Op::UpdateEntity
            | Op::MergeEntity
            | Op::InsertOrReplaceEntity
            | Op::InsertOrMergeEntity
            | Op::DeleteEntity
            | Op::EntityGroupTransaction => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use auth::{Permissions, SasUse};
    use std::collections::BTreeSet;

    /// The second column of the Table service's lines in a file under `docs`.
    fn names(file: &str) -> BTreeSet<String> {
        let path = format!("{}/../../docs/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let columns = lines.map(|line| line.split('\t').collect::<Vec<_>>());
        columns.filter(|columns| columns[0] == "table").map(|columns| columns[1].to_owned()).collect()
    }

    #[test]
    fn there_is_one_op_for_each_published_operation_and_none_is_missing() {
        let all: BTreeSet<String> = Op::ALL.iter().map(|op| op.name().to_owned()).collect();
        assert_eq!(all, names("operations.txt"));
        assert_eq!(names("not-yet.txt"), BTreeSet::new());
    }

    #[test]
    fn rights() {
        assert_eq!(Op::InsertOrMergeEntity.needs().all_of, Permissions::of("au"));
        assert_eq!(Op::QueryEntities.needs().sas, SasUse::Any);
        for op in [Op::QueryTables, Op::CreateTable, Op::DeleteTable] {
            assert_eq!(op.needs().sas, SasUse::AccountOnly, "{}", op.name());
        }
        for op in [Op::GetTableAcl, Op::SetTableAcl] {
            assert_eq!(op.needs().sas, SasUse::Never, "{}", op.name());
        }
    }
}
