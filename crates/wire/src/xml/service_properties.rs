//! Get and Set Service Properties. A setting that the document leaves out is `None` and keeps its value; a setting that
//! it names is complete.

use super::protocol_settings::ProtocolSettings;
use super::read::{self, Node, XmlError};
use super::write::XmlWriter;

const ROOT: &str = "StorageServiceProperties";
const EVERYWHERE: [&str; 4] = ["HourMetrics", "MinuteMetrics", "Metrics", "Cors"];
/// Only files are not logged.
const LOGGING: &str = "Logging";
const FOR_BLOBS: [&str; 3] = ["DefaultServiceVersion", "DeleteRetentionPolicy", "StaticWebsite"];
const FOR_FILES: [&str; 2] = ["ShareDeleteRetentionPolicy", "ProtocolSettings"];

const RETENTION_DAYS: std::ops::RangeInclusive<u16> = 1..=365;
pub const CORS_RULES_MAX: usize = 5;
/// The largest size of all rules together, without their XML tags.
const CORS_BYTES_MAX: usize = 2 * 1024;
/// The most origins of one rule, and the most headers of one rule, not counting prefixes with a star.
const CORS_VALUES_MAX: usize = 64;
const CORS_PREFIXES_MAX: usize = 2;
const CORS_VALUE_CHARS_MAX: usize = 256;
const CORS_METHODS: [&str; 8] = ["DELETE", "GET", "HEAD", "MERGE", "PATCH", "POST", "OPTIONS", "PUT"];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceProperties {
    pub logging: Option<Logging>,
    pub hour_metrics: Option<Metrics>,
    pub minute_metrics: Option<Metrics>,
    /// `Some` without rules deletes the rules.
    pub cors: Option<Vec<CorsRule>>,
    pub default_service_version: Option<String>,
    pub delete_retention: Option<DeleteRetention>,
    pub static_website: Option<StaticWebsite>,
    pub share_delete_retention: Option<ShareDeleteRetention>,
    pub protocol_settings: Option<ProtocolSettings>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logging {
    pub version: String,
    pub delete: bool,
    pub read: bool,
    pub write: bool,
    pub retention: Retention,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    pub version: String,
    pub enabled: bool,
    /// Always given when enabled.
    pub include_apis: Option<bool>,
    pub retention: Retention,
}

/// For how long logs and metrics are kept; forever unless enabled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Always given when enabled.
    pub days: Option<u16>,
    pub enabled: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeleteRetention {
    pub enabled: bool,
    /// Always given when enabled.
    pub days: Option<u16>,
    pub allow_permanent_delete: Option<bool>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShareDeleteRetention {
    pub enabled: bool,
    /// Always given when enabled.
    pub days: Option<u16>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticWebsite {
    pub enabled: bool,
    pub index_document: Option<String>,
    pub error_document_404_path: Option<String>,
    /// Excludes `index_document`.
    pub default_index_document_path: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CorsRule {
    pub allowed_origins: Vec<String>,
    pub allowed_methods: Vec<String>,
    pub allowed_headers: Vec<String>,
    pub exposed_headers: Vec<String>,
    pub max_age_seconds: u32,
}

impl ServiceProperties {
    /// Parses a document of the Blob service, which has more settings than the others.
    pub fn parse(document: &[u8]) -> Result<ServiceProperties, XmlError> {
        Self::of(document, &[&EVERYWHERE[..], &[LOGGING], &FOR_BLOBS].concat())
    }

    /// Parses a document of the File service.
    pub fn parse_for_files(document: &[u8]) -> Result<ServiceProperties, XmlError> {
        Self::of(document, &[&EVERYWHERE[..], &FOR_FILES].concat())
    }

    /// Parses a document of a service that has only the common settings.
    pub fn parse_common(document: &[u8]) -> Result<ServiceProperties, XmlError> {
        Self::of(document, &[&EVERYWHERE[..], &[LOGGING]].concat())
    }

    /// Parses what [`ServiceProperties::write`] wrote, of whichever service.
    pub fn parse_any(document: &[u8]) -> Result<ServiceProperties, XmlError> {
        Self::of(document, &[&EVERYWHERE[..], &[LOGGING], &FOR_BLOBS, &FOR_FILES].concat())
    }

    fn of(document: &[u8], settings: &[&str]) -> Result<ServiceProperties, XmlError> {
        let root = read::parse(document, ROOT)?;
        root.only(settings)?;
        // Before 2013-08-15 there was one kind of metrics, by the hour.
        let hour = root.child("HourMetrics").or_else(|| root.child("Metrics"));
        Ok(ServiceProperties {
            logging: root.child(LOGGING).map(Logging::parse).transpose()?,
            hour_metrics: hour.map(Metrics::parse).transpose()?,
            minute_metrics: root.child("MinuteMetrics").map(Metrics::parse).transpose()?,
            cors: root.child("Cors").map(parse_cors).transpose()?,
            default_service_version: root.child("DefaultServiceVersion").map(parse_version).transpose()?,
            delete_retention: root.child("DeleteRetentionPolicy").map(DeleteRetention::parse).transpose()?,
            static_website: root.child("StaticWebsite").map(StaticWebsite::parse).transpose()?,
            share_delete_retention: root
                .child("ShareDeleteRetentionPolicy")
                .map(ShareDeleteRetention::parse)
                .transpose()?,
            protocol_settings: root.child("ProtocolSettings").map(ProtocolSettings::parse).transpose()?,
        })
    }

    pub fn write(&self, xml: &mut XmlWriter) {
        xml.open(ROOT);
        if let Some(logging) = &self.logging {
            logging.write(xml);
        }
        if let Some(metrics) = &self.hour_metrics {
            metrics.write("HourMetrics", xml);
        }
        if let Some(metrics) = &self.minute_metrics {
            metrics.write("MinuteMetrics", xml);
        }
        if let Some(rules) = &self.cors {
            write_cors(rules, xml);
        }
        xml.leaf_if("DefaultServiceVersion", self.default_service_version.as_ref());
        if let Some(retention) = &self.delete_retention {
            retention.write(xml);
        }
        if let Some(website) = &self.static_website {
            website.write(xml);
        }
        if let Some(retention) = &self.share_delete_retention {
            retention.write(xml);
        }
        if let Some(settings) = &self.protocol_settings {
            settings.write(xml);
        }
        xml.close(ROOT);
    }
}

impl Default for Logging {
    fn default() -> Logging {
        Logging { version: "1.0".into(), delete: false, read: false, write: false, retention: Retention::default() }
    }
}

impl Logging {
    fn parse(node: &Node) -> Result<Logging, XmlError> {
        node.only(&["Version", "Delete", "Read", "Write", "RetentionPolicy"])?;
        Ok(Logging {
            version: analytics_version(node)?,
            delete: node.flag("Delete")?,
            read: node.flag("Read")?,
            write: node.flag("Write")?,
            retention: Retention::parse(node.required("RetentionPolicy")?)?,
        })
    }

    fn write(&self, xml: &mut XmlWriter) {
        xml.open(LOGGING).leaf("Version", &self.version).flag("Delete", self.delete).flag("Read", self.read);
        self.retention.write(xml.flag("Write", self.write));
        xml.close(LOGGING);
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics { version: "1.0".into(), enabled: false, include_apis: None, retention: Retention::default() }
    }
}

impl Metrics {
    fn parse(node: &Node) -> Result<Metrics, XmlError> {
        node.only(&["Version", "Enabled", "IncludeAPIs", "RetentionPolicy"])?;
        let enabled = node.flag("Enabled")?;
        Ok(Metrics {
            version: analytics_version(node)?,
            enabled,
            include_apis: if enabled { Some(node.flag("IncludeAPIs")?) } else { node.flag_if("IncludeAPIs")? },
            retention: Retention::parse(node.required("RetentionPolicy")?)?,
        })
    }

    fn write(&self, name: &str, xml: &mut XmlWriter) {
        xml.open(name).leaf("Version", &self.version).flag("Enabled", self.enabled);
        if let Some(include_apis) = self.include_apis {
            xml.flag("IncludeAPIs", include_apis);
        }
        self.retention.write(xml);
        xml.close(name);
    }
}

impl Retention {
    fn parse(node: &Node) -> Result<Retention, XmlError> {
        node.only(&["Enabled", "Days"])?;
        let enabled = node.flag("Enabled")?;
        Ok(Retention { enabled, days: days(node, enabled)? })
    }

    fn write(&self, xml: &mut XmlWriter) {
        xml.open("RetentionPolicy").flag("Enabled", self.enabled);
        write_days(self.days, xml);
        xml.close("RetentionPolicy");
    }
}

impl DeleteRetention {
    fn parse(node: &Node) -> Result<DeleteRetention, XmlError> {
        node.only(&["Enabled", "Days", "AllowPermanentDelete"])?;
        let enabled = node.flag("Enabled")?;
        let allow_permanent_delete = node.flag_if("AllowPermanentDelete")?;
        Ok(DeleteRetention { enabled, days: days(node, enabled)?, allow_permanent_delete })
    }

    fn write(&self, xml: &mut XmlWriter) {
        xml.open("DeleteRetentionPolicy").flag("Enabled", self.enabled);
        write_days(self.days, xml);
        if let Some(allow) = self.allow_permanent_delete {
            xml.flag("AllowPermanentDelete", allow);
        }
        xml.close("DeleteRetentionPolicy");
    }
}

impl ShareDeleteRetention {
    fn parse(node: &Node) -> Result<ShareDeleteRetention, XmlError> {
        node.only(&["Enabled", "Days"])?;
        let enabled = node.flag("Enabled")?;
        Ok(ShareDeleteRetention { enabled, days: days(node, enabled)? })
    }

    fn write(&self, xml: &mut XmlWriter) {
        xml.open("ShareDeleteRetentionPolicy").flag("Enabled", self.enabled);
        write_days(self.days, xml);
        xml.close("ShareDeleteRetentionPolicy");
    }
}

impl StaticWebsite {
    fn parse(node: &Node) -> Result<StaticWebsite, XmlError> {
        node.only(&["Enabled", "IndexDocument", "ErrorDocument404Path", "DefaultIndexDocumentPath"])?;
        let text = |name| Ok(node.text_if(name)?.map(str::to_owned));
        let website = StaticWebsite {
            enabled: node.flag("Enabled")?,
            index_document: text("IndexDocument")?,
            error_document_404_path: text("ErrorDocument404Path")?,
            default_index_document_path: text("DefaultIndexDocumentPath")?,
        };
        match (&website.index_document, &website.default_index_document_path) {
            (Some(_), Some(path)) => Err(XmlError::bad("DefaultIndexDocumentPath", path.clone())),
            _ => Ok(website),
        }
    }

    fn write(&self, xml: &mut XmlWriter) {
        xml.open("StaticWebsite").flag("Enabled", self.enabled);
        xml.leaf_if("IndexDocument", self.index_document.as_ref());
        xml.leaf_if("ErrorDocument404Path", self.error_document_404_path.as_ref());
        xml.leaf_if("DefaultIndexDocumentPath", self.default_index_document_path.as_ref());
        xml.close("StaticWebsite");
    }
}

fn parse_cors(node: &Node) -> Result<Vec<CorsRule>, XmlError> {
    let nodes = node.many("CorsRule", "CorsRule", CORS_RULES_MAX)?;
    let bytes: usize = nodes.iter().flat_map(|rule| &rule.children).map(|child| child.text.trim_ascii().len()).sum();
    if bytes > CORS_BYTES_MAX {
        return Err(XmlError::TooMany { node: "Cors", limit: CORS_BYTES_MAX });
    }
    nodes.iter().map(CorsRule::parse).collect()
}

fn write_cors(rules: &[CorsRule], xml: &mut XmlWriter) {
    if rules.is_empty() {
        xml.empty("Cors");
        return;
    }
    xml.open("Cors");
    for rule in rules {
        xml.open("CorsRule").leaf("AllowedOrigins", rule.allowed_origins.join(","));
        xml.leaf("AllowedMethods", rule.allowed_methods.join(","));
        xml.leaf("AllowedHeaders", rule.allowed_headers.join(","));
        xml.leaf("ExposedHeaders", rule.exposed_headers.join(","));
        xml.number("MaxAgeInSeconds", u64::from(rule.max_age_seconds)).close("CorsRule");
    }
    xml.close("Cors");
}

impl CorsRule {
    fn parse(node: &Node) -> Result<CorsRule, XmlError> {
        node.only(&["AllowedOrigins", "AllowedMethods", "AllowedHeaders", "ExposedHeaders", "MaxAgeInSeconds"])?;
        let max_age = node.text("MaxAgeInSeconds")?;
        Ok(CorsRule {
            allowed_origins: origins(node)?,
            allowed_methods: methods(node)?,
            allowed_headers: headers(node, "AllowedHeaders")?,
            exposed_headers: headers(node, "ExposedHeaders")?,
            max_age_seconds: max_age
                .parse::<i32>()
                .ok()
                .and_then(|seconds| u32::try_from(seconds).ok())
                .ok_or_else(|| XmlError::bad("MaxAgeInSeconds", max_age))?,
        })
    }
}

fn origins(rule: &Node) -> Result<Vec<String>, XmlError> {
    let name = "AllowedOrigins";
    let origins = list(rule, name)?;
    if origins.is_empty() {
        return Err(XmlError::bad(name, ""));
    }
    if origins.len() > CORS_VALUES_MAX {
        return Err(XmlError::TooMany { node: name, limit: CORS_VALUES_MAX });
    }
    Ok(origins)
}

fn methods(rule: &Node) -> Result<Vec<String>, XmlError> {
    let name = "AllowedMethods";
    let methods = list(rule, name)?;
    if methods.is_empty() {
        return Err(XmlError::bad(name, ""));
    }
    match methods.iter().find(|method| !CORS_METHODS.contains(&method.as_str())) {
        Some(method) => Err(XmlError::bad(name, method.clone())),
        None => Ok(methods),
    }
}

fn headers(rule: &Node, name: &'static str) -> Result<Vec<String>, XmlError> {
    let headers = list(rule, name)?;
    let prefixes = headers.iter().filter(|header| header.ends_with('*') && header.len() > 1).count();
    if prefixes > CORS_PREFIXES_MAX {
        return Err(XmlError::TooMany { node: name, limit: CORS_PREFIXES_MAX });
    }
    if headers.len() - prefixes > CORS_VALUES_MAX {
        return Err(XmlError::TooMany { node: name, limit: CORS_VALUES_MAX });
    }
    Ok(headers)
}

/// The values between the commas.
fn list(rule: &Node, name: &'static str) -> Result<Vec<String>, XmlError> {
    let text = rule.text(name)?;
    let values = text.split(',').map(str::trim_ascii).filter(|value| !value.is_empty());
    values
        .map(|value| match value.chars().count() {
            0..=CORS_VALUE_CHARS_MAX => Ok(value.to_owned()),
            _ => Err(XmlError::bad(name, value)),
        })
        .collect()
}

fn analytics_version(node: &Node) -> Result<String, XmlError> {
    match node.text("Version")? {
        // 2.0 is a newer form of the log lines.
        version @ ("1.0" | "2.0") => Ok(version.to_owned()),
        other => Err(XmlError::bad("Version", other)),
    }
}

fn parse_version(node: &Node) -> Result<String, XmlError> {
    let text = node.leaf()?;
    let is_date = text.len() == 10 && crate::dates::parse_iso(text).is_some();
    is_date.then(|| text.to_owned()).ok_or_else(|| XmlError::bad("DefaultServiceVersion", text))
}

/// Required if the policy is enabled; otherwise an invalid value is ignored, because clients send a zero.
fn days(node: &Node, enabled: bool) -> Result<Option<u16>, XmlError> {
    let text = if enabled { Some(node.text("Days")?) } else { node.text_if("Days")? };
    let Some(text) = text else { return Ok(None) };
    let days = text.parse().ok().filter(|days| RETENTION_DAYS.contains(days));
    if enabled && days.is_none() {
        return Err(XmlError::bad("Days", text));
    }
    Ok(days)
}

fn write_days(days: Option<u16>, xml: &mut XmlWriter) {
    if let Some(days) = days {
        xml.number("Days", u64::from(days));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = "<Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>true</Write>\
        <RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></Logging>\
        <HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>\
        <RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics>\
        <MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled>\
        <RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics>\
        <Cors><CorsRule><AllowedOrigins>http://a, https://*.b</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods>\
        <AllowedHeaders>x-ms-meta-*</AllowedHeaders><ExposedHeaders /><MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule></Cors>\
        <DefaultServiceVersion>2021-12-02</DefaultServiceVersion>\
        <DeleteRetentionPolicy><Enabled>true</Enabled><Days>365</Days><AllowPermanentDelete>false</AllowPermanentDelete>\
        </DeleteRetentionPolicy><StaticWebsite><Enabled>true</Enabled><IndexDocument>index.html</IndexDocument>\
        <ErrorDocument404Path>404.html</ErrorDocument404Path></StaticWebsite>";

    fn parse(inner: &str) -> Result<ServiceProperties, XmlError> {
        ServiceProperties::parse(format!("<StorageServiceProperties>{inner}</StorageServiceProperties>").as_bytes())
    }

    fn rule(origins: &str, methods: &str, headers: &str, age: &str) -> String {
        format!(
            "<CorsRule><AllowedOrigins>{origins}</AllowedOrigins><AllowedMethods>{methods}</AllowedMethods>\
             <AllowedHeaders>{headers}</AllowedHeaders><ExposedHeaders/><MaxAgeInSeconds>{age}</MaxAgeInSeconds></CorsRule>"
        )
    }

    fn cors(rules: &str) -> Result<Vec<CorsRule>, XmlError> {
        parse(&format!("<Cors>{rules}</Cors>")).map(|properties| properties.cors.expect("there is a Cors element"))
    }

    #[test]
    fn a_full_document_reads_back_as_it_was_written() {
        let properties = parse(FULL).expect("valid");
        assert_eq!(properties.logging.as_ref().map(|l| l.retention.days), Some(Some(7)));
        assert_eq!(properties.hour_metrics.as_ref().map(|m| m.include_apis), Some(Some(true)));
        assert_eq!(properties.cors.as_ref().map(|c| c[0].allowed_origins.len()), Some(2));
        let mut xml = XmlWriter::fragment();
        properties.write(&mut xml);
        let written = xml.finish();
        assert_eq!(ServiceProperties::parse(&written).as_ref(), Ok(&properties));
        let expected = FULL.replace("http://a, ", "http://a,");
        let text = String::from_utf8(written).expect("UTF-8");
        assert_eq!(text, format!("<StorageServiceProperties>{expected}</StorageServiceProperties>"));
    }

    #[test]
    fn left_out_is_not_empty() {
        assert_eq!(parse(""), Ok(ServiceProperties::default()));
        assert_eq!(parse("<Cors/>").map(|p| p.cors), Ok(Some(vec![])));
    }

    #[test]
    fn an_element_that_is_named_is_complete() {
        for child in ["Version", "Delete", "Read", "Write", "RetentionPolicy"] {
            let logging = FULL.split("</Logging>").next().expect("it begins with Logging").to_owned() + "</Logging>";
            let (before, rest) = logging.split_once(&format!("<{child}>")).expect("the child is there");
            let (_, after) = rest.split_once(&format!("</{child}>")).expect("and is closed");
            assert_eq!(parse(&format!("{before}{after}")), Err(XmlError::Missing(child)));
        }
        let metrics = "<HourMetrics><Version>1.0</Version><Enabled>true</Enabled></HourMetrics>";
        assert_eq!(parse(metrics), Err(XmlError::Missing("IncludeAPIs")));
        assert_eq!(parse("<StaticWebsite/>"), Err(XmlError::Missing("Enabled")));
    }

    #[test]
    fn retention_is_one_to_365_days() {
        let retention = |days: &str| {
            parse(&format!("<DeleteRetentionPolicy><Enabled>true</Enabled>{days}</DeleteRetentionPolicy>"))
                .map(|properties| properties.delete_retention.and_then(|r| r.days))
        };
        assert_eq!(retention("<Days>1</Days>"), Ok(Some(1)));
        assert_eq!(retention("<Days>365</Days>"), Ok(Some(365)));
        for days in ["0", "366", "-1", "x", ""] {
            assert_eq!(retention(&format!("<Days>{days}</Days>")), Err(XmlError::bad("Days", days)));
        }
        assert_eq!(retention(""), Err(XmlError::Missing("Days")));
        let off = "<DeleteRetentionPolicy><Enabled>false</Enabled><Days>0</Days></DeleteRetentionPolicy>";
        assert_eq!(parse(off).map(|p| p.delete_retention), Ok(Some(DeleteRetention::default())));
    }

    #[test]
    fn deleted_shares_are_kept_for_one_to_365_days() {
        let of = |inner: &str| {
            let document = format!(
                "<StorageServiceProperties><ShareDeleteRetentionPolicy>{inner}</ShareDeleteRetentionPolicy>\
                 </StorageServiceProperties>"
            );
            let parsed = ServiceProperties::parse_for_files(document.as_bytes())?;
            let mut xml = XmlWriter::fragment();
            parsed.write(&mut xml);
            assert_eq!(ServiceProperties::parse_any(&xml.finish()).as_ref(), Ok(&parsed));
            Ok(parsed.share_delete_retention)
        };
        let kept = |days| Ok(Some(ShareDeleteRetention { enabled: true, days: Some(days) }));
        assert_eq!(of("<Enabled>true</Enabled><Days>1</Days>"), kept(1));
        assert_eq!(of("<Enabled>true</Enabled><Days>365</Days>"), kept(365));
        assert_eq!(of("<Enabled>true</Enabled><Days>366</Days>"), Err(XmlError::bad("Days", "366")));
        assert_eq!(of("<Enabled>true</Enabled>"), Err(XmlError::Missing("Days")));
        assert_eq!(of("<Enabled>false</Enabled>"), Ok(Some(ShareDeleteRetention::default())));
        let permanent = "<Enabled>false</Enabled><AllowPermanentDelete>true</AllowPermanentDelete>";
        assert_eq!(of(permanent), Err(XmlError::Malformed));
    }

    #[test]
    fn cors_rules_have_limits() {
        let good = rule("*", "GET", "*", "0");
        assert_eq!(cors(&good.repeat(5)).map(|rules| rules.len()), Ok(5));
        assert_eq!(cors(&good.repeat(6)), Err(XmlError::TooMany { node: "CorsRule", limit: 5 }));
        let origins = |n: usize| vec!["a"; n].join(",");
        assert!(cors(&rule(&origins(64), "GET", "", "0")).is_ok());
        let too_many = XmlError::TooMany { node: "AllowedOrigins", limit: 64 };
        assert_eq!(cors(&rule(&origins(65), "GET", "", "0")), Err(too_many));
        let long = "a".repeat(257);
        assert_eq!(cors(&rule(&long, "GET", "", "0")), Err(XmlError::bad("AllowedOrigins", long.clone())));
        assert_eq!(cors(&rule("*", "get", "", "0")), Err(XmlError::bad("AllowedMethods", "get")));
        assert_eq!(cors(&rule("*", "", "", "0")), Err(XmlError::bad("AllowedMethods", "")));
        assert_eq!(cors(&rule("", "GET", "", "0")), Err(XmlError::bad("AllowedOrigins", "")));
        assert_eq!(cors(&rule("*", "GET", "", "-1")), Err(XmlError::bad("MaxAgeInSeconds", "-1")));
        assert!(cors(&rule("*", "GET", "a-*,b-*,c", "0")).is_ok());
        let prefixes = XmlError::TooMany { node: "AllowedHeaders", limit: 2 };
        assert_eq!(cors(&rule("*", "GET", "a-*,b-*,c-*", "0")), Err(prefixes));
        let large = rule(&vec!["o".repeat(250); 4].join(","), "GET", "", "0").repeat(3);
        assert_eq!(cors(&large), Err(XmlError::TooMany { node: "Cors", limit: 2048 }));
        assert_eq!(cors("<CorsRule/>"), Err(XmlError::Missing("MaxAgeInSeconds")));
    }

    #[test]
    fn other_refusals() {
        assert_eq!(parse("<Unknown/>"), Err(XmlError::Malformed));
        // Settings of one service are unknown to the others, whatever they contain.
        let document = |name: &str| format!("<StorageServiceProperties><{name}/></StorageServiceProperties>");
        for name in [&FOR_BLOBS[..], &FOR_FILES].concat() {
            let refused = ServiceProperties::parse_common(document(name).as_bytes());
            assert_eq!(refused, Err(XmlError::Malformed), "{name}");
        }
        for name in [&FOR_BLOBS[..], &[LOGGING]].concat() {
            let refused = ServiceProperties::parse_for_files(document(name).as_bytes());
            assert_eq!(refused, Err(XmlError::Malformed), "{name}");
        }
        for name in FOR_FILES {
            assert_eq!(ServiceProperties::parse(document(name).as_bytes()), Err(XmlError::Malformed), "{name}");
        }
        assert_eq!(parse("<Cors/><Cors/>"), Err(XmlError::Malformed));
        let version = "<DefaultServiceVersion>newest</DefaultServiceVersion>";
        assert_eq!(parse(version), Err(XmlError::bad("DefaultServiceVersion", "newest")));
        let both = "<StaticWebsite><Enabled>true</Enabled><IndexDocument>a</IndexDocument>\
                    <DefaultIndexDocumentPath>b</DefaultIndexDocumentPath></StaticWebsite>";
        assert_eq!(parse(both), Err(XmlError::bad("DefaultIndexDocumentPath", "b")));
        let flag = "<StaticWebsite><Enabled>yes</Enabled></StaticWebsite>";
        assert_eq!(parse(flag), Err(XmlError::bad("Enabled", "yes")));
    }

    #[test]
    fn the_old_metrics_are_the_hourly_ones() {
        let old = FULL.replace("HourMetrics", "Metrics");
        assert_eq!(parse(&old), parse(FULL));
    }
}
