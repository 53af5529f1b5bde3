//! Random filters over random entities, compared with a second, simple evaluator that shares no code with the real one.

use concurrency::Timestamp;
use engine::{Key, Unread};

use super::plan::stored;
use super::{Filter, Name, Plan, Step, Subject};
use crate::entity::value::{Value, guid_text, time_text};

/// Pseudorandom numbers, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }

    fn of<T: Clone>(&mut self, these: &[T]) -> T {
        these[self.next(these.len())].clone()
    }
}

const TEXTS: [&str; 8] = ["", "a", "ab", "b", "it's", "\u{10000}", "\u{ffff}", "\u{e000}x"];
const NAMES: [&str; 6] = ["PartitionKey", "RowKey", "Timestamp", "P", "Q", "R"];

fn value(random: &mut Random) -> Value<'static> {
    match random.next(8) {
        0 => Value::String(random.of(&TEXTS).into()),
        1 => Value::Int32(random.of(&[-1, 0, 1, 7, i32::MAX])),
        2 => Value::Int64(random.of(&[-1, 0, 1, 7, i64::MAX])),
        3 => Value::Double(random.of(&[-1.5, 0.0, -0.0, 7.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY])),
        4 => Value::Boolean(random.of(&[true, false])),
        5 => Value::DateTime(random.of(&[Timestamp(637_596_494_267_026_499), Timestamp(637_596_494_267_026_500)])),
        6 => Value::Guid(random.of(&[[0; 16], [1; 16], [0xFF; 16]])),
        _ => Value::Binary(random.of(&[vec![], vec![0], vec![0, 1], vec![0xFF]]).into()),
    }
}

#[derive(Clone, Debug)]
struct FilteredEntity {
    partition: &'static str,
    row: &'static str,
    properties: Vec<(&'static str, Value<'static>)>,
}

impl FilteredEntity {
    fn random(random: &mut Random) -> FilteredEntity {
        let stamp = Timestamp(637_596_494_267_026_499 + random.next(2) as u64);
        let mut properties = vec![("Timestamp", Value::DateTime(stamp))];
        for name in &NAMES[3..] {
            if random.next(4) > 0 {
                properties.push((*name, value(random)));
            }
        }
        FilteredEntity { partition: random.of(&TEXTS), row: random.of(&TEXTS), properties }
    }

    fn get(&self, name: &str) -> Option<Value<'static>> {
        match name {
            "PartitionKey" => Some(Value::String(self.partition.into())),
            "RowKey" => Some(Value::String(self.row.into())),
            _ => self.properties.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone()),
        }
    }

    fn key(&self) -> (Vec<u8>, Vec<u8>) {
        (stored(self.partition), stored(self.row))
    }
}

impl Subject for FilteredEntity {
    fn value(&self, name: &Name) -> Result<Option<Value<'_>>, Unread> {
        Ok(self.get(match name {
            Name::PartitionKey => "PartitionKey",
            Name::RowKey => "RowKey",
            Name::Timestamp => "Timestamp",
            Name::Other(name) => name,
        }))
    }
}

/// A random expression.
enum Tree {
    Or(Box<Tree>, Box<Tree>),
    And(Box<Tree>, Box<Tree>),
    Not(Box<Tree>),
    Leaf { name: &'static str, operator: &'static str, constant: Value<'static>, turned: bool },
    Alone(&'static str),
    Truth(bool),
}

impl Tree {
    fn random(random: &mut Random, depth: usize) -> Tree {
        let inner = |random: &mut Random| Box::new(Tree::random(random, depth - 1));
        match random.next(if depth == 0 { 4 } else { 10 }) {
            4 | 5 => Tree::Or(inner(random), inner(random)),
            6 | 7 => Tree::And(inner(random), inner(random)),
            8 | 9 => Tree::Not(inner(random)),
            0 if random.next(3) == 0 => Tree::Alone(random.of(&NAMES[3..])),
            1 if random.next(4) == 0 => Tree::Truth(random.of(&[true, false])),
            _ => {
                let name = random.of(&NAMES);
                // Mostly of the type that the property has, or nothing would ever match.
                let constant = match name {
                    "PartitionKey" | "RowKey" if random.next(8) > 0 => Value::String(random.of(&TEXTS).into()),
                    _ => value(random),
                };
                let operator = random.of(&["eq", "ne", "gt", "ge", "lt", "le"]);
                Tree::Leaf { name, operator, constant, turned: random.next(4) == 0 }
            }
        }
    }

    /// The expression as text, with parentheses where they are needed, and sometimes where they are not.
    fn write(&self, random: &mut Random, binding: u8) -> String {
        let (own, text) = match self {
            Tree::Or(one, other) => (1, format!("{} or {}", one.write(random, 1), other.write(random, 1))),
            Tree::And(one, other) => (2, format!("{} and {}", one.write(random, 2), other.write(random, 2))),
            Tree::Not(one) => (3, format!("not {}", one.write(random, 3))),
            Tree::Alone(name) => (3, (*name).to_owned()),
            Tree::Truth(truth) => (3, truth.to_string()),
            Tree::Leaf { name, operator, constant, turned } => {
                let constant = literal(constant);
                let turned_operator = match *operator {
                    "gt" => "lt",
                    "ge" => "le",
                    "lt" => "gt",
                    "le" => "ge",
                    same => same,
                };
                (
                    3,
                    if *turned {
                        format!("{constant} {turned_operator} {name}")
                    } else {
                        format!("{name}  {operator} {constant}")
                    },
                )
            }
        };
        if own < binding || random.next(5) == 0 { format!("({text})") } else { text }
    }

    fn holds(&self, entity: &FilteredEntity) -> bool {
        match self {
            Tree::Or(one, other) => one.holds(entity) | other.holds(entity),
            Tree::And(one, other) => one.holds(entity) & other.holds(entity),
            Tree::Not(one) => !one.holds(entity),
            Tree::Truth(truth) => *truth,
            Tree::Alone(name) => matches!(entity.get(name), Some(Value::Boolean(true))),
            Tree::Leaf { name, operator, constant, .. } => {
                let Some(found) = entity.get(name) else { return false };
                let Some([less, equal, greater]) = relation(&found, constant) else { return false };
                match *operator {
                    "eq" => equal,
                    "ne" => !equal,
                    "gt" => greater,
                    "ge" => greater || equal,
                    "lt" => less,
                    _ => less || equal,
                }
            }
        }
    }
}

/// How two values compare; `None` for values of different types.
fn relation(found: &Value<'_>, constant: &Value<'_>) -> Option<[bool; 3]> {
    fn of<T: PartialOrd>(one: T, other: T) -> Option<[bool; 3]> {
        Some([one < other, one == other, one > other])
    }
    let units = |text: &str| text.encode_utf16().collect::<Vec<u16>>();
    match (found, constant) {
        (Value::String(one), Value::String(other)) => of(units(one), units(other)),
        (Value::Int32(one), Value::Int32(other)) => of(one, other),
        (Value::Int64(one), Value::Int64(other)) => of(one, other),
        (Value::Double(one), Value::Double(other)) => of(*one, *other),
        (Value::Double(one), Value::Int32(other)) => of(*one, f64::from(*other)),
        (Value::Boolean(one), Value::Boolean(other)) => of(one, other),
        (Value::DateTime(one), Value::DateTime(other)) => of(one.0, other.0),
        (Value::Guid(one), Value::Guid(other)) => of(guid_text(one), guid_text(other)),
        (Value::Binary(one), Value::Binary(other)) => of(one.to_vec(), other.to_vec()),
        _ => None,
    }
}

fn literal(value: &Value<'_>) -> String {
    match value {
        Value::String(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Int32(value) => value.to_string(),
        Value::Int64(value) => format!("{value}L"),
        Value::Double(value) if value.is_nan() => "NaN".into(),
        Value::Double(value) if value.is_infinite() => if *value > 0.0 { "INF" } else { "-INF" }.into(),
        Value::Double(value) => format!("{value:?}"),
        Value::Boolean(value) => value.to_string(),
        Value::DateTime(value) => format!("datetime'{}'", time_text(*value)),
        Value::Guid(value) => format!("guid'{}'", guid_text(value)),
        Value::Binary(value) => format!("X'{}'", value.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}

/// Visits sorted entities as a scan does.
fn scanned<'a>(plan: &Plan, filter: &Filter, sorted: &'a [FilteredEntity]) -> Vec<&'a FilteredEntity> {
    let Some((mut from, to)) = plan.bounds() else { return Vec::new() };
    let mut found = Vec::new();
    let mut last = 0;
    for entity in sorted {
        let (partition, row) = entity.key();
        let key = [&*partition, &*row].concat();
        if key < from {
            continue;
        }
        if key >= to {
            break;
        }
        let step = plan.step(&partition, &row, &mut last);
        assert!(!plan.is_one_range() || step == Step::Inside, "a scan of one range asks nothing");
        match step {
            Step::Inside if plan.is_exact() || filter.matches(entity).unwrap() => found.push(entity),
            Step::Inside => {}
            Step::SkipTo(next) => {
                assert!(next > key, "a skip must lead on");
                from = next;
            }
            Step::Done => break,
        }
    }
    found
}

#[test]
fn filters_find_what_the_reference_finds_and_plans_lose_nothing() {
    let random = &mut Random(0x1234_5678_9ABC_DEF1);
    let (mut matched, mut narrowed, mut exact) = (0, 0, 0);
    for round in 0..300 {
        let mut entities: Vec<_> = (0..40).map(|_| FilteredEntity::random(random)).collect();
        entities.sort_by_key(|entity| Key::new(1).text(stored(entity.partition)).text(stored(entity.row)));
        for _ in 0..20 {
            let tree = Tree::random(random, 4);
            let text = tree.write(random, 0);
            let filter = Filter::parse(&text).unwrap_or_else(|error| panic!("{text}: {error:?}")).expect("not empty");
            let expected: Vec<_> = entities.iter().filter(|entity| tree.holds(entity)).collect();
            for entity in &entities {
                assert_eq!(filter.matches(entity).unwrap(), tree.holds(entity), "round {round}: {text} on {entity:?}");
            }
            let plan = Plan::of(Some(&filter));
            let found = scanned(&plan, &filter, &entities);
            assert_eq!(found.len(), expected.len(), "round {round}: {text} with {plan:?}");
            matched += expected.len();
            narrowed += usize::from(plan.is_narrow());
            exact += usize::from(plan.is_narrow() && plan.is_exact());
        }
    }
    let shown = format!("{matched} matches, {narrowed} plans, {exact} of them exact");
    assert!(matched > 20_000 && narrowed > 1_000 && exact > 100, "{shown}: the test shows too little");
}

#[test]
fn no_text_makes_the_parser_panic() {
    let random = &mut Random(0xFEED_FACE_CAFE_BEEF);
    let words = [
        "PartitionKey",
        "RowKey",
        "p",
        "eq",
        "ne",
        "and",
        "or",
        "not",
        "(",
        ")",
        "'",
        "''",
        "'a'",
        "1",
        "-",
        ".",
        "e",
        "L",
        "1.5",
        "datetime'",
        "guid'",
        "X'",
        "true",
        " ",
        " ",
        " ",
        "ä",
        "\u{10ffff}",
        "\0",
        ",",
        "NaN",
        "-INF",
        "9999999999999999999",
    ];
    let mut parsed = 0;
    for _ in 0..200_000 {
        let length = random.next(14);
        let text: String = (0..length).map(|_| random.of(&words)).collect();
        if let Ok(Some(filter)) = Filter::parse(&text) {
            parsed += 1;
            let _ = filter.matches(&FilteredEntity { partition: "a", row: "b", properties: Vec::new() });
            let _ = Plan::of(Some(&filter)).bounds();
        }
    }
    assert!(parsed > 500, "only {parsed} were filters");
}
