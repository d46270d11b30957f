//! What a simulated client asks for, and what comes back.

use std::sync::Arc;

/// Which method brings the ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Method {
    /// `nextId`, or `nextIds` for more than one.
    #[default]
    #[value(name = "nextId")]
    NextId,
    /// `getId` of the original interface; one id per call.
    #[value(name = "getId")]
    GetId,
}

/// What to ask for at every call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The id type. Sent unchecked: the node has the last word.
    pub id_type: String,
    /// The method.
    pub method: Method,
    /// How many ids per call; at least 1.
    pub count: u32,
    /// Whether to ask for texts, with the prefix.
    pub texts: bool,
    /// The gate passes to take in turn; none for a type that is not sharded.
    pub gate_passes: Arc<[String]>,
}

impl Request {
    /// A request for numbers, of a type that is not sharded.
    pub fn new(id_type: &str, method: Method, count: u32) -> Self {
        let id_type = id_type.to_owned();
        Request { id_type, method, count, texts: false, gate_passes: Arc::new([]) }
    }

    /// The same, with `count` different gate passes.
    pub fn with_gate_passes(self, count: u32) -> Self {
        Request { gate_passes: (0..count).map(|n| format!("gate-{n}")).collect(), ..self }
    }
}

/// The ids that a call brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// One id.
    One(i64),
    /// Ranges as `(first, count)`, as they came: unchecked.
    Many(Vec<(i64, i64)>),
    /// Ids as texts.
    Texts(Vec<String>),
}

impl Answer {
    /// How many ids it claims to hold.
    pub fn ids(&self) -> u64 {
        match self {
            Answer::One(_) => 1,
            // Saturating: the numbers come from the wire.
            Answer::Many(ranges) => {
                ranges.iter().fold(0, |n: u64, r| n.saturating_add(r.1.max(0) as u64))
            }
            Answer::Texts(texts) => texts.len() as u64,
        }
    }

    /// How many records it takes to keep it.
    pub fn records(&self) -> u64 {
        match self {
            Answer::One(_) => 1,
            Answer::Many(ranges) => ranges.len() as u64,
            Answer::Texts(texts) => texts.len() as u64,
        }
    }

    /// What is wrong with it as an answer to a request for `count` ids: it
    /// must bring exactly these, in ranges of positive ids; `ascending` ranges,
    /// unless the type promises no order.
    pub fn defect(&self, count: u32, ascending: bool) -> Option<String> {
        let ids = self.ids();
        let ranges = match self {
            Answer::Texts(texts) if texts.iter().any(String::is_empty) => {
                return Some("an empty text is no id".to_owned());
            }
            Answer::Texts(_) => &[][..],
            Answer::One(id) if *id >= 1 => return None,
            Answer::One(id) => return Some(format!("{id} is no id: ids are positive")),
            Answer::Many(ranges) => ranges,
        };
        let mut end = 1;
        for &(first, count) in ranges {
            if first < end || count < 1 {
                return Some(format!("the range ({first}, {count}) is empty or out of order"));
            }
            match first.checked_add(count) {
                Some(next) if ascending => end = next,
                Some(_) => {}
                None => return Some(format!("the range ({first}, {count}) passes 2^63")),
            }
        }
        (ids != u64::from(count)).then(|| format!("{ids} ids instead of {count}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defects_of_answers() {
        let many = |ranges: &[(i64, i64)]| Answer::Many(ranges.to_vec());
        for (answer, count) in [
            (Answer::One(1), 1),
            (Answer::One(i64::MAX), 1),
            (many(&[(1, 10)]), 10),
            (many(&[(1, 4), (5, 6)]), 10),
            (many(&[(1, 4), (100, 6)]), 10),
            (Answer::Texts(vec!["a".into(), "b".into()]), 2),
        ] {
            assert_eq!(answer.defect(count, true), None, "{answer:?}");
        }
        assert_eq!(many(&[(5, 6), (1, 4)]).defect(10, false), None, "where there is no order");
        for (answer, why) in [
            (Answer::Texts(vec!["a".into()]), "1 ids instead of 10"),
            (Answer::Texts(vec!["a".into(), String::new()]), "an empty text is no id"),
            (Answer::One(0), "0 is no id: ids are positive"),
            (many(&[]), "0 ids instead of 10"),
            (many(&[(1, 9)]), "9 ids instead of 10"),
            (many(&[(1, 11)]), "11 ids instead of 10"),
            (many(&[(0, 10)]), "the range (0, 10) is empty or out of order"),
            (many(&[(5, 0), (5, 10)]), "the range (5, 0) is empty or out of order"),
            (many(&[(5, 6), (1, 4)]), "the range (1, 4) is empty or out of order"),
            (many(&[(5, 5), (9, 5)]), "the range (9, 5) is empty or out of order"),
            (
                many(&[(i64::MAX, i64::MAX)]),
                "the range (9223372036854775807, 9223372036854775807) passes 2^63",
            ),
        ] {
            assert_eq!(answer.defect(10, true).as_deref(), Some(why), "{answer:?}");
        }
    }
}
