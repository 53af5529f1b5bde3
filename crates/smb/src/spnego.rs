//! SPNEGO (RFC 4178, MS-SPNG): tokens that agree on a mechanism. Ours is NTLM.
//!
//! Tokens are DER with a form that is known in advance, so decoding does not recurse and needs no limit of depth; the length is bounded by
//! that of a token in SESSION_SETUP.

mod der;

use self::der::{Der, wrap};
use crate::status::{Result, Status};

/// Bytes of a token: what SESSION_SETUP has room for.
pub const TOKEN_BYTES_MAX: usize = 64 << 10;

/// Mechanisms in a list.
pub const MECHANISMS_MAX: usize = 32;

/// Bytes of the list, which is kept for as long as a logon takes. Clients send some fifty.
pub const MECH_LIST_BYTES_MAX: usize = 1 << 10;

/// 1.3.6.1.5.5.2
const OID_SPNEGO: &[u8] = &[0x2B, 6, 1, 5, 5, 2];
/// 1.3.6.1.4.1.311.2.2.10
const OID_NTLM: &[u8] = &[0x2B, 6, 1, 4, 1, 0x82, 0x37, 2, 2, 10];

const OID: u8 = 0x06;
const ENUMERATED: u8 = 0x0A;
const OCTETS: u8 = 0x04;
const GENERAL_STRING: u8 = 0x1B;
const SEQUENCE: u8 = 0x30;
const APPLICATION: u8 = 0x60;

/// The tag of a field.
const fn context(number: u8) -> u8 {
    0xA0 | number
}

/// Where the negotiation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    AcceptCompleted = 0,
    AcceptIncomplete = 1,
    Reject = 2,
    RequestMic = 3,
}

/// What a client sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// The first token.
    Init(Init<'a>),
    /// The tokens after it.
    Response(Response<'a>),
    /// NTLM without anything around it.
    Raw(&'a [u8]),
}

/// NegTokenInit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Init<'a> {
    /// The list of mechanisms as it came, without its context tag: what `mechListMIC` signs.
    pub mech_list: &'a [u8],
    /// The place of NTLM in it.
    pub ntlm: Option<usize>,
    /// For the first mechanism.
    pub mech_token: Option<&'a [u8]>,
}

/// NegTokenResp.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Response<'a> {
    pub state: Option<u8>,
    pub token: Option<&'a [u8]>,
    pub mech_list_mic: Option<&'a [u8]>,
}

impl Token<'_> {
    /// Reads a token.
    ///
    /// # Errors
    /// INVALID_PARAMETER.
    pub fn decode(bytes: &[u8]) -> Result<Token<'_>> {
        if bytes.len() > TOKEN_BYTES_MAX {
            return Err(Status::INVALID_PARAMETER);
        }
        let token = match bytes.first() {
            Some(b'N') if bytes.starts_with(b"NTLMSSP\0") => Some(Token::Raw(bytes)),
            Some(&APPLICATION) => init(bytes).map(Token::Init),
            Some(_) => response(bytes).map(Token::Response),
            None => None,
        };
        token.ok_or(Status::INVALID_PARAMETER)
    }
}

fn init(bytes: &[u8]) -> Option<Init<'_>> {
    let mut outer = Der::new(Der::new(bytes).value(APPLICATION)?);
    if outer.value(OID)? != OID_SPNEGO {
        return None;
    }
    let mut fields = Der::new(Der::new(outer.value(context(0))?).value(SEQUENCE)?);
    let mech_list = fields.value(context(0))?;
    if mech_list.len() > MECH_LIST_BYTES_MAX {
        return None;
    }
    let ntlm = place_of_ntlm(mech_list)?;
    fields.optional(context(1))?;
    let mech_token = match fields.optional(context(2))? {
        Some(token) => Some(Der::new(token).value(OCTETS)?),
        None => None,
    };
    Some(Init { mech_list, ntlm, mech_token })
}

/// None for a list that is none, Some(None) for one without NTLM.
fn place_of_ntlm(mech_list: &[u8]) -> Option<Option<usize>> {
    let mut list = Der::new(Der::new(mech_list).value(SEQUENCE)?);
    let mut place = None;
    for count in 0..MECHANISMS_MAX {
        if list.is_empty() {
            return Some(place);
        }
        if list.value(OID)? == OID_NTLM {
            place = place.or(Some(count));
        }
    }
    None
}

fn response(bytes: &[u8]) -> Option<Response<'_>> {
    let mut fields = Der::new(Der::new(Der::new(bytes).value(context(1))?).value(SEQUENCE)?);
    let state = match fields.optional(context(0))? {
        Some(state) => Some(*Der::new(state).value(ENUMERATED)?.first()?),
        None => None,
    };
    fields.optional(context(1))?;
    let octets = |field: Option<Option<_>>| -> Option<Option<_>> {
        match field? {
            Some(field) => Some(Some(Der::new(field).value(OCTETS)?)),
            None => Some(None),
        }
    };
    let token = octets(fields.optional(context(2)))?;
    let mech_list_mic = octets(fields.optional(context(3)))?;
    Some(Response { state, token, mech_list_mic })
}

/// The token of a NEGOTIATE answer: NTLM, and the hint that clients ignore.
#[must_use]
pub fn init2() -> Vec<u8> {
    let list = wrap(context(0), &wrap(SEQUENCE, &wrap(OID, OID_NTLM)));
    let hint = wrap(context(0), &wrap(GENERAL_STRING, b"not_defined_in_RFC4178@please_ignore"));
    let hints = wrap(context(3), &wrap(SEQUENCE, &hint));
    let fields = wrap(SEQUENCE, &[list, hints].concat());
    wrap(APPLICATION, &[wrap(OID, OID_SPNEGO), wrap(context(0), &fields)].concat())
}

/// The token of a SESSION_SETUP answer. `first` names the mechanism, as the first answer does.
#[must_use]
pub fn answer(state: State, first: bool, token: Option<&[u8]>, mech_list_mic: Option<&[u8]>) -> Vec<u8> {
    let mut fields = wrap(context(0), &wrap(ENUMERATED, &[state as u8]));
    if first {
        fields.extend(wrap(context(1), &wrap(OID, OID_NTLM)));
    }
    if let Some(token) = token {
        fields.extend(wrap(context(2), &wrap(OCTETS, token)));
    }
    if let Some(mic) = mech_list_mic {
        fields.extend(wrap(context(3), &wrap(OCTETS, mic)));
    }
    wrap(context(1), &wrap(SEQUENCE, &fields))
}

#[cfg(any(test, feature = "testing"))]
pub(crate) mod client {
    use super::*;

    /// NegTokenInit with NTLM at a place of a list of other mechanisms.
    pub(crate) fn init(others: usize, token: Option<&[u8]>) -> (Vec<u8>, Vec<u8>) {
        let kerberos = wrap(OID, &[0x2A, 0x86, 0x48, 0x82, 0xF7, 0x12, 1, 2, 2]);
        let list = wrap(SEQUENCE, &[kerberos.repeat(others), wrap(OID, OID_NTLM)].concat());
        let mut fields = wrap(context(0), &list);
        if let Some(token) = token {
            fields.extend(wrap(context(2), &wrap(OCTETS, token)));
        }
        let inner = wrap(context(0), &wrap(SEQUENCE, &fields));
        (wrap(APPLICATION, &[wrap(OID, OID_SPNEGO), inner].concat()), list)
    }

    pub(crate) fn response(token: &[u8], mic: Option<&[u8]>) -> Vec<u8> {
        let mut fields = wrap(context(2), &wrap(OCTETS, token));
        if let Some(mic) = mic {
            fields.extend(wrap(context(3), &wrap(OCTETS, mic)));
        }
        wrap(context(1), &wrap(SEQUENCE, &fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::hex;

    #[test]
    fn the_first_token_is_read() {
        let (bytes, list) = client::init(1, Some(b"token"));
        let init = Init { mech_list: &list, ntlm: Some(1), mech_token: Some(b"token") };
        assert_eq!(Token::decode(&bytes), Ok(Token::Init(init)));
        for length in 0..bytes.len() {
            assert_eq!(Token::decode(&bytes[..length]), Err(Status::INVALID_PARAMETER), "{length}");
        }
        // Bytes behind the list would be kept with it.
        let long = [list.clone(), vec![0; MECH_LIST_BYTES_MAX]].concat();
        let fields = wrap(context(0), &wrap(SEQUENCE, &wrap(context(0), &long)));
        let bytes = wrap(APPLICATION, &[wrap(OID, OID_SPNEGO), fields].concat());
        assert_eq!(Token::decode(&bytes), Err(Status::INVALID_PARAMETER));
        let (bytes, _) = client::init(MECHANISMS_MAX, None);
        assert_eq!(Token::decode(&bytes), Err(Status::INVALID_PARAMETER));
    }

    #[test]
    fn later_tokens_are_read() {
        let bytes = client::response(&[7; 300], Some(&[1; 16]));
        let response = Response { state: None, token: Some(&[7; 300]), mech_list_mic: Some(&[1; 16]) };
        assert_eq!(Token::decode(&bytes), Ok(Token::Response(response)));
        assert_eq!(Token::decode(b"NTLMSSP\0rest"), Ok(Token::Raw(b"NTLMSSP\0rest")));
        assert_eq!(Token::decode(&vec![0; TOKEN_BYTES_MAX + 1]), Err(Status::INVALID_PARAMETER));
        assert_eq!(Token::decode(b""), Err(Status::INVALID_PARAMETER));
    }

    /// The token that Windows sends in its answer, with NTLM alone.
    #[test]
    fn our_first_token_is_that_of_windows() {
        let expected = hex("604806062b0601050502a03e303ca00e300c060a2b06010401823702020a
            a32a3028a0261b246e6f745f646566696e65645f696e5f5246433431373840706c656173655f69676e6f7265");
        assert_eq!(init2(), expected);
    }

    /// The last answer of the logon in "the anatomy of signing and cryptographic keys".
    #[test]
    fn our_last_token_is_that_of_windows() {
        let expected = hex("A11B3019A0030A0100A3120410010000003B453CDC3524164200000000");
        let mic = hex("010000003B453CDC3524164200000000");
        assert_eq!(answer(State::AcceptCompleted, false, None, Some(&mic)), expected);
    }
}
