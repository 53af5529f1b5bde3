//! Plans: the ranges of rows that a filter's conditions on keys leave.
//!
//! A plan is a list of areas, each a range of partition keys and a range of row keys in each of them. It contains every
//! key that the filter can match. Whether a row matches is for the filter to say, unless the plan is exact. For every
//! row, a scan asks whether it lies in an area, and where to continue if it does not.

use engine::{Key, prefix_end};

use super::{Filter, Name, Operator};
use crate::entity::value::Value;
use crate::key::ordered;

/// With more areas a plan would cost more than it saves.
const AREAS_MAX: usize = 512;

/// The keys that a query's rows can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    areas: Vec<Area>,
    is_exact: bool,
}

/// What a scan does at a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Inside,
    /// No row before this key can match. The key lies after the current row; it is without the prefix of all keys of
    /// the table.
    SkipTo(Vec<u8>),
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Area {
    partitions: Span,
    rows: Span,
}

/// Texts from `from` to before `to`, as they are stored in keys.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Span {
    from: Vec<u8>,
    to: Vec<u8>,
}

/// A bound after every text.
const END: u8 = 0xFF;

impl Plan {
    pub fn everything() -> Plan {
        Plan::exactly(vec![Area { partitions: Span::everything(), rows: Span::everything() }])
    }

    /// Whether it leaves out any key.
    #[cfg(test)]
    pub fn is_narrow(&self) -> bool {
        self.areas != Plan::everything().areas
    }

    /// Whether every row in its areas matches the filter, so that the filter need not be evaluated.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    pub fn of(filter: Option<&Filter>) -> Plan {
        filter.map_or_else(Plan::everything, |filter| plan(filter, true))
    }

    /// The smallest range of keys that contains all areas, without the prefix of all keys of the table. `None`: there
    /// are no areas.
    pub fn bounds(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let from = self.areas.iter().map(Area::from).min()?;
        let to = self.areas.iter().map(Area::to).max()?;
        (from < to).then_some((from, to))
    }

    /// Whether every key within the bounds lies in an area. Then a scan of the bounds need not ask at each row.
    pub fn is_one_range(&self) -> bool {
        // The keys of one partition stand together, and so do those of all of them.
        let everything = Span::everything();
        let is_whole = |area: &Area| area.partitions == everything && area.rows == everything;
        matches!(&*self.areas, [area] if area.partitions.is_one() || is_whole(area))
    }

    /// What a scan does at the row with these stored keys. `last` is the area of the previous row, in which the next
    /// one mostly lies too.
    pub fn step(&self, partition: &[u8], row: &[u8], last: &mut usize) -> Step {
        if self.areas.get(*last).is_some_and(|area| area.has(partition, row)) {
            return Step::Inside;
        }
        let mut next: Option<Vec<u8>> = None;
        for (n, area) in self.areas.iter().enumerate() {
            match area.step(partition, row) {
                Step::Inside => {
                    *last = n;
                    return Step::Inside;
                }
                Step::SkipTo(key) if next.as_ref().is_none_or(|next| key < *next) => next = Some(key),
                Step::SkipTo(_) | Step::Done => {}
            }
        }
        next.map_or(Step::Done, Step::SkipTo)
    }

    fn exactly(areas: Vec<Area>) -> Plan {
        Plan { areas, is_exact: true }
    }

    fn inexact(self) -> Plan {
        Plan { is_exact: false, ..self }
    }

    fn none() -> Plan {
        Plan::exactly(Vec::new())
    }

    fn or(mut self, other: Plan) -> Plan {
        self.areas.extend(other.areas);
        if self.areas.len() > AREAS_MAX {
            return Plan::everything().inexact();
        }
        Plan { is_exact: self.is_exact && other.is_exact, ..self }
    }

    fn and(self, other: Plan) -> Plan {
        if self.areas.len() * other.areas.len() > AREAS_MAX {
            // Both are correct; the one with fewer areas is cheaper.
            return if self.areas.len() <= other.areas.len() { self } else { other }.inexact();
        }
        let pairs = self.areas.iter().flat_map(|one| other.areas.iter().map(move |other| one.and(other)));
        Plan { areas: pairs.flatten().collect(), is_exact: self.is_exact && other.is_exact }
    }
}

/// The areas in which the filter can be true, or, if not `wanted`, false.
fn plan(filter: &Filter, wanted: bool) -> Plan {
    match (filter, wanted) {
        (Filter::Not(part), _) => plan(part, !wanted),
        (Filter::All(parts), true) | (Filter::Any(parts), false) => {
            parts.iter().fold(Plan::everything(), |all, part| all.and(plan(part, wanted)))
        }
        (Filter::Any(parts), true) | (Filter::All(parts), false) => {
            parts.iter().fold(Plan::none(), |any, part| any.or(plan(part, wanted)))
        }
        (Filter::Compare { property, operator, constant }, _) => comparison(property, *operator, constant, wanted),
    }
}

fn comparison(property: &Name, operator: Operator, constant: &Value<'_>, wanted: bool) -> Plan {
    let is_partition = match property {
        Name::PartitionKey => true,
        Name::RowKey => false,
        Name::Timestamp | Name::Other(_) => return Plan::everything().inexact(),
    };
    let Value::String(text) = constant else {
        // Keys are texts: a comparison with another type is always false.
        return if wanted { Plan::none() } else { Plan::everything() };
    };
    let operator = if wanted { operator } else { operator.opposite() };
    let spans = Span::of(operator, text).into_iter().filter(|span| span.from < span.to);
    let area = |span| match is_partition {
        true => Area { partitions: span, rows: Span::everything() },
        false => Area { partitions: Span::everything(), rows: span },
    };
    Plan::exactly(spans.map(area).collect())
}

impl Area {
    fn has(&self, partition: &[u8], row: &[u8]) -> bool {
        self.partitions.has(partition) && self.rows.has(row)
    }

    fn and(&self, other: &Area) -> Option<Area> {
        let partitions = self.partitions.and(&other.partitions)?;
        Some(Area { partitions, rows: self.rows.and(&other.rows)? })
    }

    fn from(&self) -> Vec<u8> {
        match self.partitions.is_one() {
            true => [&*self.partitions.from, &*self.rows.from].concat(),
            false => self.partitions.from.clone(),
        }
    }

    fn to(&self) -> Vec<u8> {
        match self.partitions.is_one() {
            true => [&*self.partitions.from, &*self.rows.to].concat(),
            false => self.partitions.to.clone(),
        }
    }

    fn step(&self, partition: &[u8], row: &[u8]) -> Step {
        if partition >= &*self.partitions.to {
            return Step::Done;
        }
        if partition < &*self.partitions.from {
            return Step::SkipTo(self.from());
        }
        if row < &*self.rows.from {
            return Step::SkipTo([partition, &*self.rows.from].concat());
        }
        if row < &*self.rows.to {
            return Step::Inside;
        }
        let next = prefix_end(partition);
        if next < self.partitions.to { Step::SkipTo(next) } else { Step::Done }
    }
}

impl Span {
    fn everything() -> Span {
        Span { from: Vec::new(), to: vec![END] }
    }

    fn of(operator: Operator, text: &str) -> Vec<Span> {
        let at = stored(text);
        let after = prefix_end(&at);
        let below = |to| Span { from: Vec::new(), to };
        let above = |from| Span { from, to: vec![END] };
        match operator {
            Operator::Eq => vec![Span { from: at, to: after }],
            Operator::Ne => vec![below(at), above(after)],
            Operator::Gt => vec![above(after)],
            Operator::Ge => vec![above(at)],
            Operator::Lt => vec![below(at)],
            Operator::Le => vec![below(after)],
        }
    }

    fn has(&self, text: &[u8]) -> bool {
        *self.from <= *text && *text < *self.to
    }

    /// Whether it contains one text only.
    fn is_one(&self) -> bool {
        !self.from.is_empty() && self.to == prefix_end(&self.from)
    }

    fn and(&self, other: &Span) -> Option<Span> {
        let from = (&self.from).max(&other.from);
        let to = (&self.to).min(&other.to);
        (from < to).then(|| Span { from: from.clone(), to: to.clone() })
    }
}

/// A text as it is stored in a key. No stored text is a prefix of another.
pub fn stored(text: &str) -> Vec<u8> {
    Key::new(0).text(ordered(text)).as_bytes()[1..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Plan {
        Plan::of(Filter::parse(text).unwrap().as_ref())
    }

    fn key(partition: &str, row: &str) -> Vec<u8> {
        [stored(partition), stored(row)].concat()
    }

    #[test]
    fn a_point_is_one_row() {
        let plan = of("PartitionKey eq 'p' and RowKey eq 'r'");
        assert_eq!(plan.bounds(), Some((key("p", "r"), prefix_end(&key("p", "r")))));
        assert_eq!(plan.step(&stored("p"), &stored("r"), &mut 0), Step::Inside);
    }

    #[test]
    fn a_partition_a_range_and_a_prefix() {
        let (p, after) = (stored("p"), prefix_end(&stored("p")));
        assert_eq!(of("PartitionKey eq 'p'").bounds(), Some((p.clone(), [&*p, &[END]].concat())));
        let range = of("PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 'b' and Age gt 5").bounds();
        assert_eq!(range, Some((key("p", "a"), key("p", "b"))));
        assert_eq!(
            of("PartitionKey ge 'p' and PartitionKey le 'p'").bounds(),
            Some((p.clone(), [&*p, &[END]].concat()))
        );
        assert_eq!(of("PartitionKey gt 'p'").bounds(), Some((after, vec![END])));
        assert_eq!(of("not (PartitionKey ge 'p')").bounds(), Some((vec![], p)));
        for everything in ["Age gt 5", "PartitionKey eq 'p' or Age gt 5", "RowKey eq 'r'", "not (PartitionKey eq 5)"] {
            assert_eq!(of(everything).bounds(), Some((vec![], vec![END])), "{everything}");
        }
        for nothing in
            ["PartitionKey eq 'p' and PartitionKey eq 'q'", "PartitionKey eq 5", "RowKey gt 'b' and RowKey lt 'a'"]
        {
            assert_eq!(of(nothing).bounds(), None, "{nothing}");
        }
    }

    #[test]
    fn one_range_needs_no_steps() {
        for one in [
            "PartitionKey eq 'p'",
            "PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 'b' and Age gt 5",
            "PartitionKey eq 'p' and RowKey eq 'r'",
            "Age gt 5",
        ] {
            assert!(of(one).is_one_range(), "{one}");
        }
        assert!(Plan::everything().is_one_range());
        for several in
            ["RowKey eq 'r'", "PartitionKey gt 'p' and RowKey lt 'r'", "PartitionKey eq 'p' or PartitionKey eq 'q'"]
        {
            assert!(!of(several).is_one_range(), "{several}");
        }
    }

    #[test]
    fn many_points_are_looked_up_one_by_one() {
        let parts: Vec<_> = (0..100).map(|n| format!("(PartitionKey eq 'p{n:03}' and RowKey eq '{n}')")).collect();
        let plan = of(&parts.join(" or "));
        assert_eq!(plan.bounds().unwrap().0, key("p000", "0"));
        let mut last = 0;
        assert_eq!(plan.step(&stored("p007"), &stored("7"), &mut last), Step::Inside);
        assert_eq!(plan.step(&stored("p007"), &stored("8"), &mut last), Step::SkipTo(key("p008", "8")));
        assert_eq!(plan.step(&stored("p099"), &stored("x"), &mut last), Step::Done);
    }

    #[test]
    fn what_is_said_of_keys_alone_is_said_whole() {
        for exact in
            ["PartitionKey eq 'p' and RowKey ge 'a'", "not (PartitionKey eq 'p' or RowKey ne 'a')", "RowKey eq 5"]
        {
            assert!(of(exact).is_exact(), "{exact}");
        }
        assert!(Plan::of(None).is_exact());
        // More areas than a plan may have.
        let rows: Vec<_> = (0..40).map(|n| format!("RowKey eq '{n}'")).collect();
        let both = format!("({}) and ({})", rows.join(" or "), rows.join(" or ").replace("RowKey", "PartitionKey"));
        for inexact in ["PartitionKey eq 'p' and Age gt 5", "PartitionKey eq 'p' or not Old", &both] {
            assert!(!of(inexact).is_exact(), "{inexact}");
        }
        let rows = Plan::exactly(vec![Plan::everything().areas.remove(0); AREAS_MAX]);
        assert!(rows.clone().or(Plan::none()).is_exact() && !rows.clone().or(rows).is_exact());
    }

    #[test]
    fn rows_alone_are_looked_up_in_each_partition() {
        let plan = of("RowKey eq 'm'");
        assert_eq!(plan.step(&stored("p"), &stored("a"), &mut 0), Step::SkipTo(key("p", "m")));
        assert_eq!(plan.step(&stored("p"), &stored("z"), &mut 0), Step::SkipTo(prefix_end(&stored("p"))));
    }
}
