//! How many there are of each kind. Thousands of handles have only a few different share modes, and each open and each
//! REST operation is judged against all of them.

#[derive(Clone, Debug)]
pub(super) struct Tally<T>(Vec<(T, usize)>);

impl<T> Default for Tally<T> {
    fn default() -> Tally<T> {
        Tally(Vec::new())
    }
}

impl<T: Copy + PartialEq> Tally<T> {
    pub fn add(&mut self, kind: T) {
        match self.0.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => self.0.push((kind, 1)),
        }
    }

    pub fn remove(&mut self, kind: T) {
        let found = self.0.iter().position(|(known, _)| *known == kind).expect("it was added before");
        self.0[found].1 -= 1;
        if self.0[found].1 == 0 {
            self.0.swap_remove(found);
        }
    }

    /// Each kind once.
    pub fn kinds(&self) -> impl Iterator<Item = T> {
        self.0.iter().map(|(kind, _)| *kind)
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn a_kind_is_there_until_the_last_of_it_is_removed() {
        let mut tally = Tally::default();
        for kind in ['a', 'b', 'a'] {
            tally.add(kind);
        }
        let kinds = |tally: &Tally<char>| tally.kinds().collect::<String>();
        assert_eq!(kinds(&tally), "ab");
        tally.remove('a');
        assert_eq!(kinds(&tally), "ab");
        tally.remove('a');
        assert_eq!(kinds(&tally), "b");
        tally.remove('b');
        assert_eq!(kinds(&tally), "");
    }
}
