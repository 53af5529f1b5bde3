//! What every black-box suite needs: a server of its own, a client that hides nothing, tables of expected answers.
//!
//! The client is ours on purpose. A library would mend, retry or refuse to send the very requests these tests are about.

// Other suites take more of it, or less.
#[allow(dead_code)]
mod client;
mod cluster;
#[allow(dead_code)]
mod elsewhere;
mod server;
#[allow(dead_code)]
mod table;
#[allow(dead_code)]
mod xml;

#[allow(unused_imports)]
pub use client::{ACCOUNT, Answer, Client, Headers, date_after};
#[allow(unused_imports)]
pub use elsewhere::Elsewhere;
#[allow(unused_imports)]
pub use server::{Server, Service};
#[allow(unused_imports)]
pub use table::Table;
#[allow(unused_imports)]
pub use xml::Element;

/// Service properties that queues and tables know nothing of.
#[allow(dead_code)]
pub const FOREIGN_SETTINGS: [&str; 6] = [
    "<DefaultServiceVersion>2020-10-02</DefaultServiceVersion>",
    "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>5</Days></DeleteRetentionPolicy>",
    "<DeleteRetentionPolicy/>",
    "<StaticWebsite><Enabled>true</Enabled></StaticWebsite>",
    "<ShareDeleteRetentionPolicy><Enabled>false</Enabled></ShareDeleteRetentionPolicy>",
    "<Other/>",
];
