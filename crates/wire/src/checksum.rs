//! The two checksums of the protocol, computed piece by piece: MD5 (`Content-MD5`) and CRC-64/NVME
//! (`x-ms-content-crc64`).

use std::fmt;

use md5::Digest;

/// MD5 of all bytes so far.
#[derive(Clone, Default)]
pub struct Md5(md5::Md5);

impl Md5 {
    pub fn new() -> Md5 {
        Md5::default()
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(self) -> [u8; 16] {
        self.0.finalize().into()
    }

    pub fn of(bytes: &[u8]) -> [u8; 16] {
        md5::Md5::digest(bytes).into()
    }
}

/// CRC-64/NVME of all bytes so far: polynomial 0xAD93D23594C93659 reflected, all ones in and out.
#[derive(Clone, Default)]
pub struct Crc64(crc64fast_nvme::Digest);

impl Crc64 {
    pub fn new() -> Crc64 {
        Crc64::default()
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    pub fn finish(self) -> u64 {
        self.0.sum64()
    }

    pub fn of(bytes: &[u8]) -> u64 {
        let mut sum = Crc64::new();
        sum.update(bytes);
        sum.finish()
    }
}

impl fmt::Debug for Md5 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Md5")
    }
}

impl fmt::Debug for Crc64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Crc64")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_values() {
        assert_eq!(Crc64::of(b"123456789"), 0xAE8B_1486_0A79_9888);
        assert_eq!(Crc64::of(b""), 0);
        assert_eq!(crate::base64::encode(&Md5::of(b"")), "1B2M2Y8AsgTpgAmY7PhCfg==");
        assert_eq!(crate::base64::encode(&Md5::of(b"123456789")), "JfnnlDI7RTiF9RgfG2JNCw==");
    }

    /// A slow reference, one bit at a time, to compare with at every alignment and length.
    fn slow_crc64(bytes: &[u8]) -> u64 {
        !bytes.iter().fold(!0u64, |sum, byte| {
            (0..8).fold(sum ^ u64::from(*byte), |sum, _| (sum >> 1) ^ ((sum & 1) * 0x9A6C_9329_AC4B_C9B5))
        })
    }

    #[test]
    fn pieces_sum_up_to_the_whole() {
        let bytes: Vec<u8> = (0..1000u32).map(|n| (n * 7 + n / 256) as u8).collect();
        for cut in [0, 1, 7, 8, 15, 16, 63, 64, 127, 128, 129, 255, 256, 500, 999, 1000] {
            let (head, tail) = bytes.split_at(cut);
            let mut crc = Crc64::new();
            let mut md5 = Md5::new();
            for part in [head, tail] {
                crc.update(part);
                md5.update(part);
            }
            assert_eq!(crc.finish(), slow_crc64(&bytes));
            assert_eq!(md5.finish(), Md5::of(&bytes));
            assert_eq!(Crc64::of(tail), slow_crc64(tail));
        }
    }
}
