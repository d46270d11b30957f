//! tinyid's tokens, from its table `tiny_id_token` (token, biz_type): which secret may
//! have ids of which types. A secret stands there once for each type; here it is one
//! token with all of them.

use std::collections::BTreeMap;
use std::fmt;

use super::{Table, delimited, dump};
use crate::domain::access::check_scopes;
use crate::domain::{Error, TypeName};

/// The table, as tinyid makes it.
pub const TOKEN_TABLE: &str = "tiny_id_token";
/// Longest secret, in bytes: that of its column.
const MAX_SECRET: usize = 255;

/// The secret of a token. Its debug form hides it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ForeignSecret(String);

impl ForeignSecret {
    /// To be hashed, never to be shown.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ForeignSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ForeignSecret(***)")
    }
}

/// A token of the other system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignToken {
    /// What its clients send.
    pub secret: ForeignSecret,
    /// Names of types, sorted, each once.
    pub types: Vec<String>,
    /// Why it cannot be taken over, if it cannot.
    pub problem: Option<String>,
}

/// The table of tokens in a text: a dump that holds it, or lines with a header. The error
/// names `source.text` with line and column.
pub fn read_tokens(text: &str) -> Result<Table, Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(Error::invalid("source.text", "source.text is empty"));
    }
    match delimited::looks_delimited(text) {
        true => delimited::read(text),
        false => dump::read_table(text, TOKEN_TABLE),
    }
}

/// The tokens of a table with the columns `token` and `biz_type`, in the order of their
/// secrets, which nobody sees. No message holds a secret.
pub fn plan_tokens(table: &Table) -> Result<Vec<ForeignToken>, Error> {
    let column = |name: &str| {
        table.columns.iter().position(|column| column == name).ok_or_else(|| {
            Error::invalid("source", format!("source has no column {name}, which tokens need"))
        })
    };
    let (token, biz_type) = (column("token")?, column("biz_type")?);
    let mut by_secret: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for row in &table.rows {
        let text = |at: usize| row.cells.get(at).and_then(|cell| cell.text.as_deref());
        let types = by_secret.entry(text(token).unwrap_or_default()).or_default();
        types.push(text(biz_type).unwrap_or_default().to_owned());
    }
    let each = |(secret, mut types): (&str, Vec<String>)| {
        types.sort_unstable();
        types.dedup();
        let problem = problem_of(secret, &types);
        ForeignToken { secret: ForeignSecret(secret.to_owned()), types, problem }
    };
    Ok(by_secret.into_iter().map(each).collect())
}

fn problem_of(secret: &str, types: &[String]) -> Option<String> {
    if secret.is_empty() || secret.len() > MAX_SECRET {
        return Some(format!("its secret must have 1 to {MAX_SECRET} bytes"));
    }
    // A `*` at the end would mean more here than it does there.
    if let Some(wrong) = types.iter().find(|name| !TypeName::is_legal(name)) {
        let shown: String = wrong.chars().take(64).collect();
        return Some(format!("{shown:?} is no legal name of a type"));
    }
    check_scopes(types).err().map(|error| error.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "-- MariaDB dump 10\nCREATE TABLE `tiny_id_info` (`biz_type` text, `max_id` \
        int);\nINSERT INTO `tiny_id_info` VALUES ('a',1);\nCREATE TABLE `tiny_id_token` (\n`id` int, \
        `token` varchar(255),\n`biz_type` varchar(63), `remark` text, PRIMARY KEY (`id`));\nINSERT \
        INTO `tiny_id_token` VALUES (1,'s3cr3t','b',''),(2,'s3cr3t','a','x'),\n(3,'other','a',''),\
        (4,'s3cr3t','b','');\n-- Dump completed on 2024\n";

    #[test]
    fn a_secret_is_one_token_with_all_its_types() {
        let tokens = plan_tokens(&read_tokens(DUMP).unwrap()).unwrap();
        let found: Vec<_> =
            tokens.iter().map(|t| (t.secret.reveal(), t.types.join(" "), &t.problem)).collect();
        assert_eq!(found, [("other", "a".to_owned(), &None), ("s3cr3t", "a b".to_owned(), &None)]);
        assert!(!format!("{tokens:?}").contains("s3cr3t"));
        let csv = "token,biz_type\ns3cr3t,a\nother,\n,a\n\"x*\",b*\n";
        let tokens = plan_tokens(&read_tokens(csv).unwrap()).unwrap();
        let problems: Vec<_> = tokens.iter().filter_map(|t| t.problem.as_deref()).collect();
        assert_eq!(
            problems,
            [
                "its secret must have 1 to 255 bytes",
                "\"\" is no legal name of a type",
                "\"b*\" is no legal name of a type"
            ]
        );
    }

    #[test]
    fn what_is_cut_short_or_something_else_is_refused_with_its_place() {
        for cut in [DUMP.len() - 30, DUMP.find("(3,").unwrap() + 4, DUMP.find("'b',''").unwrap()] {
            let error = read_tokens(&DUMP[..cut]).unwrap_err();
            assert_eq!(error.field, Some("source.text"));
            assert!(error.message.contains("cut short"), "{error}");
            assert!(
                error.message.contains("line ") && !error.message.contains("s3cr3t"),
                "{error}"
            );
        }
        assert!(read_tokens("").is_err());
        let other = "CREATE TABLE x (a int); INSERT INTO x VALUES (1);";
        assert!(read_tokens(other).unwrap_err().message.contains("tiny_id_token"));
        let table = read_tokens("token,name\na,b\n").unwrap();
        assert!(plan_tokens(&table).unwrap_err().message.contains("biz_type"));
    }
}
