//! A limit on how deep a parser recurses.
//!
//! A recursive parser needs stack for each level of nesting, and its input decides how many levels there are. So each
//! level holds a [`Level`]: there are never more of them than the limit, and a level that ends, in whatever way, makes
//! room for another.

use std::cell::Cell;
use std::rc::Rc;

/// Counts the levels of one parser.
#[derive(Debug)]
pub struct Depth {
    left: Rc<Cell<usize>>,
}

/// One level; it ends when it is dropped.
#[derive(Debug)]
#[must_use = "the level ends when this is dropped"]
pub struct Level {
    left: Rc<Cell<usize>>,
}

impl Depth {
    /// Up to `most` levels at once.
    pub fn up_to(most: usize) -> Depth {
        Depth { left: Rc::new(Cell::new(most)) }
    }

    /// Enters one level more. `None`: that would be too deep.
    pub fn enter(&self) -> Option<Level> {
        self.left.set(self.left.get().checked_sub(1)?);
        Some(Level { left: Rc::clone(&self.left) })
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        self.left.set(self.left.get() + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_given_back_however_it_ends() {
        let depth = Depth::up_to(2);
        let fails = || -> Option<()> {
            let _level = depth.enter()?;
            None
        };
        for _ in 0..10 {
            assert_eq!(fails(), None);
        }
        let outer = depth.enter();
        let inner = depth.enter();
        assert!(outer.is_some() && inner.is_some() && depth.enter().is_none());
        drop(inner);
        assert!(depth.enter().is_some());
    }
}
