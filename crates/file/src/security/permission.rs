//! Permissions: complete descriptors as a share stores them, and as clients send and get them.

use wire::base64;

use super::{Descriptor, PermissionError, PermissionKey};

/// The longest permission in the header `x-ms-file-permission`, in either format. A longer one is made by Create Permission and named by
/// its key. Source: the documentation of Create File.
pub const PERMISSION_HEADER_BYTES_MAX: usize = 8 * 1024;

/// The permission of a file or directory: a descriptor with owner, group and DACL that fits its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    descriptor: Descriptor,
    /// The canonical form of the descriptor.
    bytes: Box<[u8]>,
}

impl Permission {
    pub fn new(descriptor: Descriptor) -> Result<Permission, PermissionError> {
        let descriptor = descriptor.complete()?;
        let bytes = descriptor.encode()?.into();
        Ok(Permission { descriptor, bytes })
    }

    /// The format `Sddl` of REST.
    pub fn from_sddl(text: &str) -> Result<Permission, PermissionError> {
        Permission::new(Descriptor::for_share(text)?)
    }

    /// The format `Binary` of REST: the self-relative form in base64.
    pub fn from_base64(text: &str) -> Result<Permission, PermissionError> {
        Permission::from_bytes(&base64::decode(text).ok_or(PermissionError::Base64)?)
    }

    /// Any self-relative form: from SMB, or from a row of the store.
    pub fn from_bytes(bytes: &[u8]) -> Result<Permission, PermissionError> {
        Permission::new(Descriptor::decode(bytes)?)
    }

    pub fn to_sddl(&self) -> Result<String, PermissionError> {
        self.descriptor.to_sddl()
    }

    pub fn to_base64(&self) -> String {
        base64::encode(&self.bytes)
    }

    /// The canonical form.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    pub fn key(&self) -> PermissionKey {
        PermissionKey::of_canonical(&self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::security::tests::EXAMPLES;

    /// The service answers one of the two for the other.
    const SDDL: &str = EXAMPLES[1];
    const BASE64: &str = "AQAUhGwAAACIAAAAAAAAABQAAAACAFgAAwAAAAAAFAD/AR8AAQEAAAAAAAUSAAAAAAAYAP8BHwABAgAAAAAABSAAAAAgAgAAAAAkAKkAEgABBQAAAAAABRUAAABZUbgXZnJdJWRjOwuMmS4AAQUAAAAAAAUVAAAAoGXPfnhLm1/nfIdwr/1IAQEFAAAAAAAFFQAAAKBlz354S5tf53yHcAECAAA=";

    #[test]
    fn one_permission_in_both_formats() {
        let (from_text, from_binary) = (Permission::from_sddl(SDDL), Permission::from_base64(BASE64));
        assert_eq!(from_text, from_binary);
        let permission = from_text.expect("a permission");
        assert_eq!((permission.to_base64().as_str(), permission.to_sddl().as_deref()), (BASE64, Ok(SDDL)));
        assert_eq!(Permission::from_bytes(permission.as_bytes()), Ok(permission));
    }

    #[test]
    fn what_is_no_permission_is_refused() {
        for text in ["", "AQAUhGwAAACIAAAA", &BASE64[..BASE64.len() - 4], "AAAAAAAAAAAAAAAAAAAAAAAAAAA="] {
            assert_eq!(Permission::from_base64(text), Err(PermissionError::Malformed), "{text}");
        }
        for text in ["O:BAG:SYD:", "AQA", "AQAU AQAU"] {
            assert_eq!(Permission::from_base64(text), Err(PermissionError::Base64), "{text}");
        }
        let without_parts = wire::base64::encode(&Descriptor::default().encode().expect("small enough"));
        assert_eq!(Permission::from_base64(&without_parts), Err(PermissionError::OwnerMissing));
        assert_eq!(Permission::from_sddl("O:BAG:SY"), Err(PermissionError::DaclMissing));
    }

    #[test]
    fn equal_descriptors_have_equal_keys_and_others_do_not() {
        let keys = EXAMPLES.iter().filter_map(|text| Some(Permission::from_sddl(text).ok()?.key()));
        let keys: Vec<PermissionKey> = keys.collect();
        assert_eq!(keys.len(), keys.iter().collect::<HashSet<_>>().len());
        let key = |text: &str| Permission::from_sddl(text).map(|permission| permission.key());
        assert_eq!(key("O:BAG:SYD:(A;;FRFX;;;BU)"), key("D:(A;;0x1200a9;;;S-1-5-32-545)G:syO:ba"));
        assert_ne!(key("O:BAG:SYD:(A;;FA;;;BU)(A;;FA;;;BA)"), key("O:BAG:SYD:(A;;FA;;;BA)(A;;FA;;;BU)"));
        for other in
            ["O:SYG:SYD:", "O:BAG:BAD:", "O:BAG:SYD:P", "O:BAG:SYD:AI", "O:BAG:SYD:NO_ACCESS_CONTROL", "O:BAG:SYD:S:"]
        {
            assert_ne!(key("O:BAG:SYD:"), key(other), "{other}");
        }
    }

    #[test]
    fn the_key_does_not_depend_on_the_form_that_came() {
        // Owner and group at the front, as some clients lay them out.
        let permission = Permission::from_sddl("O:BAG:SYD:").expect("a permission");
        let other = [
            &[1, 0, 4, 0x80, 20, 0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0, 48, 0, 0, 0][..],
            &[1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0, 0],
            &[1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0],
            &[2, 0, 8, 0, 0, 0, 0, 0],
        ];
        let found = Permission::from_bytes(&other.concat()).expect("the same permission");
        assert_eq!((found.key(), found.as_bytes()), (permission.key(), permission.as_bytes()));
    }
}
