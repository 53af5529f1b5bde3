//! Quotas by user (MS-SMB2 2.2.37.1, MS-FSCC 2.4.41). Shares have a quota as a whole; it is told as their size, and users have none.

use super::super::cursor::{Put, Reader, len32};
use crate::status::{Result, Status};

/// What QUERY_INFO asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaRequest {
    pub single: bool,
    pub restart: bool,
}

impl QuotaRequest {
    /// Reads the input. Which users it names says nothing here.
    ///
    /// # Errors
    /// INVALID_PARAMETER, also for a list of users that is not within.
    pub fn decode(input: &[u8]) -> Result<QuotaRequest> {
        let mut reader = Reader::new(input);
        let single = reader.u8()? != 0;
        let restart = reader.u8()? != 0;
        reader.skip(2)?;
        let list = reader.u32()? as usize;
        let start = reader.u32()? as usize;
        let offset = reader.u32()? as usize;
        let sids = reader.rest().len();
        if list > sids || offset.checked_add(start).is_none_or(|end| end > sids) {
            return Err(Status::INVALID_PARAMETER);
        }
        Ok(QuotaRequest { single, restart })
    }
}

/// The quota of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// A security identifier, in its bytes.
    pub sid: Vec<u8>,
    pub changed: i64,
    pub used: i64,
    pub threshold: i64,
    pub limit: i64,
}

/// Quotas that have room, whole.
///
/// # Errors
/// NO_MORE_ENTRIES for none, BUFFER_TOO_SMALL when not even one has room.
pub fn encode(quotas: &[Quota], max: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut last = 0;
    for (count, quota) in quotas.iter().enumerate() {
        let start = out.len().next_multiple_of(8);
        if start + 40 + quota.sid.len() > max {
            break;
        }
        out.align(0, 8);
        if count > 0 {
            let distance = len32(start - last);
            out.replace(last, &distance.to_le_bytes());
        }
        last = start;
        out.put_u32(0);
        out.put_u32(len32(quota.sid.len()));
        out.put_i64(quota.changed);
        out.put_i64(quota.used);
        out.put_i64(quota.threshold);
        out.put_i64(quota.limit);
        out.put(&quota.sid);
    }
    match (quotas.is_empty(), out.is_empty()) {
        (true, _) => Err(Status::NO_MORE_ENTRIES),
        (false, true) => Err(Status::BUFFER_TOO_SMALL),
        (false, false) => Ok(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_lie_within() {
        let input = |list: u32, start: u32, offset: u32, sids: usize| {
            let mut out = vec![1, 0, 0, 0];
            [list, start, offset].into_iter().for_each(|number| out.put_u32(number));
            out.put_zeros(sids);
            QuotaRequest::decode(&out)
        };
        assert_eq!(input(0, 0, 0, 0), Ok(QuotaRequest { single: true, restart: false }));
        assert_eq!(input(8, 4, 4, 8), Ok(QuotaRequest { single: true, restart: false }));
        assert_eq!(input(9, 0, 0, 8), Err(Status::INVALID_PARAMETER));
        assert_eq!(input(0, 5, 4, 8), Err(Status::INVALID_PARAMETER));
        assert_eq!(QuotaRequest::decode(&[0; 15]), Err(Status::INVALID_PARAMETER));
    }

    #[test]
    fn quotas_are_chained() {
        let quota = Quota { sid: vec![1; 12], changed: 1, used: 2, threshold: 3, limit: 4 };
        let out = encode(&[quota.clone(), quota.clone()], 200).unwrap();
        assert_eq!((out.len(), out[0]), (56 + 52, 56));
        assert_eq!(encode(std::slice::from_ref(&quota), 51), Err(Status::BUFFER_TOO_SMALL));
        assert_eq!(encode(&[], 200), Err(Status::NO_MORE_ENTRIES));
    }
}
