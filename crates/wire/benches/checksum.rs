//! How fast checksums are: `cargo bench -p lazurite-wire --bench checksum`.

use std::hint::black_box;
use std::time::Instant;

use wire::checksum::{Crc64, Md5};

const ROUNDS: usize = 4;

fn main() {
    let bytes = vec![0x5a; 64 << 20];
    let megabytes_per_second = |name: &str, run: &dyn Fn()| {
        let began = Instant::now();
        (0..ROUNDS).for_each(|_| run());
        println!("{name}: {:.0} MB/s", (ROUNDS * bytes.len()) as f64 / 1e6 / began.elapsed().as_secs_f64());
    };
    megabytes_per_second("md5", &|| _ = black_box(Md5::of(&bytes)));
    megabytes_per_second("crc64", &|| _ = black_box(Crc64::of(&bytes)));
}
