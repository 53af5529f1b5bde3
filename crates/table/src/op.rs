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
    /// The right that a signature must carry. (Who holds the account's key may do everything.)
    #[must_use]
    pub fn needs(self) -> Need {
        let service = |letters| Need::new(Service::Table, ResourceType::Service, letters).account_sas_only();
        let table = |letters| Need::new(Service::Table, ResourceType::Container, letters).account_sas_only();
        let entity = |letters| Need::new(Service::Table, ResourceType::Object, letters);
        match self {
            Op::GetTableServiceProperties | Op::GetTableServiceStats => service("r"),
            Op::SetTableServiceProperties => service("w"),
            // A browser asks before it shows who it is.
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
            // Each operation of a transaction is judged by itself.
            Op::EntityGroupTransaction => entity(""),
        }
    }

    /// Whether its requests and answers are XML, as the older parts of the service have them.
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

    /// The second column of the lines of this service in a file under `docs`.
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
