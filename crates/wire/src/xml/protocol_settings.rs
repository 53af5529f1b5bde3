//! `ProtocolSettings` of the File service's properties: how shares are mounted. A setting that the document leaves out is `None` and
//! keeps its value.

use super::read::{Node, XmlError};
use super::write::XmlWriter;

const ROOT: &str = "ProtocolSettings";

/// The words that the lists of SMB settings are made of.
const VERSIONS: [&str; 3] = ["SMB2.1", "SMB3.0", "SMB3.1.1"];
const AUTHENTICATION_METHODS: [&str; 2] = ["NTLMv2", "Kerberos"];
const KERBEROS_TICKET_ENCRYPTION: [&str; 2] = ["RC4-HMAC", "AES-256"];
const CHANNEL_ENCRYPTION: [&str; 3] = ["AES-128-CCM", "AES-128-GCM", "AES-256-GCM"];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProtocolSettings {
    pub smb: Option<SmbSettings>,
    pub nfs: Option<NfsSettings>,
}

/// The lists are kept as they were written: words with semicolons between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SmbSettings {
    pub multichannel: Option<bool>,
    pub versions: Option<String>,
    pub authentication_methods: Option<String>,
    pub kerberos_ticket_encryption: Option<String>,
    pub channel_encryption: Option<String>,
    pub encryption_in_transit: Option<bool>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NfsSettings {
    pub encryption_in_transit: Option<bool>,
}

impl ProtocolSettings {
    pub(super) fn parse(node: &Node) -> Result<ProtocolSettings, XmlError> {
        node.only(&["SMB", "NFS"])?;
        Ok(ProtocolSettings {
            smb: node.child("SMB").map(SmbSettings::parse).transpose()?,
            nfs: node.child("NFS").map(NfsSettings::parse).transpose()?,
        })
    }

    pub(super) fn write(&self, xml: &mut XmlWriter) {
        xml.open(ROOT);
        if let Some(smb) = &self.smb {
            smb.write(xml);
        }
        if let Some(nfs) = &self.nfs {
            xml.open("NFS");
            write_in_transit(nfs.encryption_in_transit, xml);
            xml.close("NFS");
        }
        xml.close(ROOT);
    }

    /// These settings, and for those that are left out the ones of `before`.
    #[must_use]
    pub fn over(self, before: ProtocolSettings) -> ProtocolSettings {
        let smb = match (self.smb, before.smb) {
            (Some(smb), Some(before)) => Some(smb.over(before)),
            (smb, before) => smb.or(before),
        };
        let nfs = match (self.nfs, before.nfs) {
            (Some(nfs), Some(before)) => {
                Some(NfsSettings { encryption_in_transit: nfs.encryption_in_transit.or(before.encryption_in_transit) })
            }
            (nfs, before) => nfs.or(before),
        };
        ProtocolSettings { smb, nfs }
    }
}

impl SmbSettings {
    fn parse(node: &Node) -> Result<SmbSettings, XmlError> {
        node.only(&[
            "Multichannel",
            "Versions",
            "AuthenticationMethods",
            "KerberosTicketEncryption",
            "ChannelEncryption",
            "EncryptionInTransit",
        ])?;
        Ok(SmbSettings {
            multichannel: flag_in(node, "Multichannel", "Enabled")?,
            versions: words(node, "Versions", &VERSIONS)?,
            authentication_methods: words(node, "AuthenticationMethods", &AUTHENTICATION_METHODS)?,
            kerberos_ticket_encryption: words(node, "KerberosTicketEncryption", &KERBEROS_TICKET_ENCRYPTION)?,
            channel_encryption: words(node, "ChannelEncryption", &CHANNEL_ENCRYPTION)?,
            encryption_in_transit: flag_in(node, "EncryptionInTransit", "Required")?,
        })
    }

    fn write(&self, xml: &mut XmlWriter) {
        xml.open("SMB");
        if let Some(enabled) = self.multichannel {
            xml.open("Multichannel").flag("Enabled", enabled).close("Multichannel");
        }
        xml.leaf_if("Versions", self.versions.as_ref());
        xml.leaf_if("AuthenticationMethods", self.authentication_methods.as_ref());
        xml.leaf_if("KerberosTicketEncryption", self.kerberos_ticket_encryption.as_ref());
        xml.leaf_if("ChannelEncryption", self.channel_encryption.as_ref());
        write_in_transit(self.encryption_in_transit, xml);
        xml.close("SMB");
    }

    fn over(self, before: SmbSettings) -> SmbSettings {
        SmbSettings {
            multichannel: self.multichannel.or(before.multichannel),
            versions: self.versions.or(before.versions),
            authentication_methods: self.authentication_methods.or(before.authentication_methods),
            kerberos_ticket_encryption: self.kerberos_ticket_encryption.or(before.kerberos_ticket_encryption),
            channel_encryption: self.channel_encryption.or(before.channel_encryption),
            encryption_in_transit: self.encryption_in_transit.or(before.encryption_in_transit),
        }
    }
}

impl NfsSettings {
    fn parse(node: &Node) -> Result<NfsSettings, XmlError> {
        node.only(&["EncryptionInTransit"])?;
        Ok(NfsSettings { encryption_in_transit: flag_in(node, "EncryptionInTransit", "Required")? })
    }
}

/// A setting that is an element with one flag in it.
fn flag_in(node: &Node, name: &str, flag: &'static str) -> Result<Option<bool>, XmlError> {
    node.child(name).map(|setting| setting.only(&[flag])?.flag(flag)).transpose()
}

fn write_in_transit(required: Option<bool>, xml: &mut XmlWriter) {
    if let Some(required) = required {
        xml.open("EncryptionInTransit").flag("Required", required).close("EncryptionInTransit");
    }
}

/// Words with semicolons between them, in any case; one at the end is usual.
fn words(node: &Node, name: &'static str, known: &[&str]) -> Result<Option<String>, XmlError> {
    let Some(text) = node.text_if(name)? else { return Ok(None) };
    let mut words = text.split(';').map(str::trim_ascii).filter(|word| !word.is_empty());
    match words.find(|word| !known.iter().any(|known| known.eq_ignore_ascii_case(word))) {
        None => Ok(Some(text.to_owned())),
        Some(word) => Err(XmlError::bad(name, word)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml::ServiceProperties;

    const FULL: &str = "<SMB><Multichannel><Enabled>true</Enabled></Multichannel><Versions>SMB2.1;SMB3.1.1;</Versions>\
        <AuthenticationMethods>NTLMv2;Kerberos</AuthenticationMethods>\
        <KerberosTicketEncryption>AES-256</KerberosTicketEncryption><ChannelEncryption>AES-256-GCM</ChannelEncryption>\
        <EncryptionInTransit><Required>true</Required></EncryptionInTransit></SMB>\
        <NFS><EncryptionInTransit><Required>false</Required></EncryptionInTransit></NFS>";

    fn document(inner: &str) -> String {
        format!("<StorageServiceProperties><{ROOT}>{inner}</{ROOT}></StorageServiceProperties>")
    }

    fn parse(inner: &str) -> Result<ProtocolSettings, XmlError> {
        let parsed = ServiceProperties::parse_for_files(document(inner).as_bytes());
        parsed.map(|properties| properties.protocol_settings.expect("the document has them"))
    }

    #[test]
    fn a_full_document_goes_both_ways() {
        let settings = parse(FULL).expect("a valid document");
        assert_eq!(settings.smb.as_ref().and_then(|smb| smb.multichannel), Some(true));
        let mut xml = XmlWriter::fragment();
        settings.write(&mut xml);
        assert_eq!(String::from_utf8(xml.finish()).expect("UTF-8"), format!("<{ROOT}>{FULL}</{ROOT}>"));
    }

    #[test]
    fn what_is_left_out_stays() {
        let before = || parse(FULL).expect("a valid document");
        assert_eq!(ProtocolSettings::default().over(before()), before());
        assert_eq!(before().over(ProtocolSettings::default()), before());
        let nfs = parse("<NFS><EncryptionInTransit><Required>true</Required></EncryptionInTransit></NFS>");
        let after = nfs.expect("a valid document").over(before());
        assert_eq!(after.nfs, Some(NfsSettings { encryption_in_transit: Some(true) }));
        assert_eq!(after.smb, before().smb);
        let smb = parse("<SMB><Versions>SMB3.0</Versions></SMB>").expect("a valid document").over(before());
        let expected = SmbSettings { versions: Some("SMB3.0".into()), ..before().smb.expect("it is there") };
        assert_eq!(smb.smb, Some(expected));
    }

    #[test]
    fn refusals() {
        assert_eq!(parse("<AFP/>"), Err(XmlError::Malformed));
        assert_eq!(parse("<SMB><Speed>high</Speed></SMB>"), Err(XmlError::Malformed));
        assert_eq!(parse("<SMB><Multichannel/></SMB>"), Err(XmlError::Missing("Enabled")));
        assert_eq!(parse("<NFS><EncryptionInTransit/></NFS>"), Err(XmlError::Missing("Required")));
        let flag = "<SMB><Multichannel><Enabled>1</Enabled></Multichannel></SMB>";
        assert_eq!(parse(flag), Err(XmlError::bad("Enabled", "1")));
        for (name, value) in [
            ("Versions", "SMB1"),
            ("AuthenticationMethods", "NTLM"),
            ("KerberosTicketEncryption", "DES"),
            ("ChannelEncryption", "none"),
        ] {
            assert_eq!(parse(&format!("<SMB><{name}>{value}</{name}></SMB>")), Err(XmlError::bad(name, value)));
        }
    }
}
