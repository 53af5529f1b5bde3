//! Inputs from a seed: pieces of the corpus, cut, doubled, put together and spoiled.

use histories::Dice;

/// Inputs are not made longer than this.
const BYTES_MAX: usize = 64 * 1024;
/// Bytes that decoders look out for.
const TELLING: &[&[u8]] = &[
    b"\0",
    b"\xFF",
    b"\r\n",
    b"--",
    b"<",
    b"</",
    b"<![CDATA[",
    b"&#x0;",
    b"&amp;",
    b"'",
    b"''",
    b"\"",
    b"(",
    b")",
    b"((((((((",
    b"%00",
    b"%",
    b"=",
    b"&",
    b"{",
    b"}",
    b"[[[[[[[[",
    b"]",
    b",",
    b":",
    b"-",
    b"18446744073709551615",
    b"-1",
    b"bytes=",
    b"*",
    b"\xC3\x28",
    b" and ",
    b" or ",
    b"not ",
    b"e999",
    b"\xF0\x9F\x98\x80",
    b"\x9f",
    b"\x5f",
    b"\x1b\xff\xff\xff\xff\xff\xff\xff\xff",
];

#[derive(Debug)]
pub struct Mutator {
    dice: Dice,
    corpus: Vec<Vec<u8>>,
}

impl Mutator {
    /// The corpus has at least one input.
    #[must_use]
    pub fn new(seed: u64, corpus: Vec<Vec<u8>>) -> Mutator {
        Mutator { dice: Dice::new(seed), corpus }
    }

    /// The next input: one of the corpus, changed up to eight times.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.dice.pick(&self.corpus).clone();
        for _ in 0..=self.dice.below(8) {
            self.change(&mut input);
        }
        input.truncate(BYTES_MAX);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.dice.below(input.len() as u64 + 1) as usize;
        let end = at + self.dice.below((input.len() - at) as u64 + 1) as usize;
        match self.dice.below(8) {
            0 => input.truncate(at),
            1 => drop(input.drain(at..end)),
            2 => {
                let piece = input[at..end].to_vec();
                let times = 1 + self.dice.below(20) as usize;
                let most = (BYTES_MAX.saturating_sub(input.len()) / piece.len().max(1)).min(times);
                input.splice(at..at, piece.repeat(most));
            }
            3 => {
                let telling = *self.dice.pick(TELLING);
                input.splice(at..at, telling.iter().copied());
            }
            4 => {
                let other = self.dice.pick(&self.corpus).clone();
                let from = self.dice.below(other.len() as u64 + 1) as usize;
                input.splice(at..end, other[from..].iter().copied());
            }
            5 => input.insert(at, self.dice.roll().to_le_bytes()[0]),
            6 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << self.dice.below(8);
                }
            }
            _ => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = byte.wrapping_add(self.dice.roll().to_le_bytes()[0]);
                }
            }
        }
    }
}
