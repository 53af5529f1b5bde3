//! Get Table ACL: the stored policies of a table.

use engine::read;
use service::StoredPolicy;
use wire::http::{Reply, StatusCode};
use wire::xml::XmlWriter;

use super::{Call, table_of};
use crate::Failure;
use crate::error::TableError;
use crate::model::{self, refuse};

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let name = table_of(call.head)?;
    let found = read(call.engine, |rows, _| {
        model::find_table(rows, call.account, &name)?.ok_or(refuse(TableError::TableNotFound))
    });
    let mut xml = XmlWriter::document();
    StoredPolicy::document(&found.await?.policies).write(&mut xml);
    Ok(Reply::new(StatusCode::OK).with_body("application/xml", xml.finish()))
}
