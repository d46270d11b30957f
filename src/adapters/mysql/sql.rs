//! The SQL of `procedures/`, embedded in the binary.

/// Version of the schema that this program works with. Raised with every
/// migration; a change of a view or a procedure that old nodes would not
/// understand comes with a migration too.
pub const VERSION: i32 = 5;

/// One file of `procedures/`.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The name of the object, or of the migration's file.
    pub name: &'static str,
    /// The text of the file.
    pub text: &'static str,
}

macro_rules! sources {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$(Source {
            name: $name,
            text: include_str!(concat!("../../../procedures/", $folder, $name, ".sql")),
        }),+]
    };
}

/// The migrations, oldest first.
pub const MIGRATIONS: &[Source] = sources!("": "V1__strict_core", "V2__every_kind", "V3__migration", "V4__accounts", "V5__callers");

/// The views; the service's account reads each of them.
pub const VIEWS: &[Source] = sources!("views/":
    "idgen_schema_version",
    "idgen_types",
    "idgen_instances",
    "idgen_node_instances",
    "idgen_migrations",
    "idgen_changes",
    "idgen_ranges",
    "idgen_histories",
    "idgen_shards",
    "idgen_type_keys",
    "idgen_workers",
    "idgen_past_workers",
    "idgen_accounts",
    "idgen_node_accounts",
    "idgen_credentials",
);

/// The procedures, helpers first.
pub const ROUTINES: &[Source] = sources!("routines/":
    "idgen_check_name",
    "idgen_check_number",
    "idgen_check_person",
    "idgen_check_text",
    "idgen_check_object",
    "idgen_json_number",
    "idgen_json_text",
    "idgen_format_limit",
    "idgen_default_max_id",
    "idgen_check_settings",
    "idgen_check_options",
    "idgen_check_key",
    "idgen_check_shard",
    "idgen_check_token",
    "idgen_check_history",
    "idgen_check_not_drained",
    "idgen_find_instance",
    "idgen_above_floor",
    "idgen_lease_range",
    "idgen_next_range",
    "idgen_reserve",
    "idgen_give_back",
    "idgen_rotate_key",
    "idgen_create_type",
    "idgen_alter_type",
    "idgen_retire_type",
    "idgen_restore_type",
    "idgen_begin_migration",
    "idgen_assign_type",
    "idgen_undo_migration",
    "idgen_add_redis_instance",
    "idgen_drain_redis_instance",
    "idgen_remove_redis_instance",
    "idgen_type_status",
    "idgen_lease_worker",
    "idgen_renew_worker",
    "idgen_release_worker",
    "idgen_check_account",
    "idgen_note_access",
    "idgen_add_account",
    "idgen_change_account",
    "idgen_remove_account",
    "idgen_add_credential",
    "idgen_touch_credential",
    "idgen_end_credential",
    "idgen_note_failed_login",
    "idgen_note_refused_call",
);

/// The tables that the migrations make.
pub const TABLES: &[&str] = &[
    "idgen_account",
    "idgen_change",
    "idgen_counter",
    "idgen_credential",
    "idgen_range_log",
    "idgen_redis_instance",
    "idgen_schema_object",
    "idgen_shard",
    "idgen_type",
    "idgen_type_history",
    "idgen_type_key",
    "idgen_worker",
    "idgen_worker_log",
    "idgen_worker_pool",
];

/// How the account of the service is made.
pub const ACCOUNT: &str = include_str!("../../../procedures/account.sql");

/// The table in which the migrations that were run are kept.
pub const HISTORY_TABLE: &str = "idgen_schema_history";

/// The mode that the procedures are made under, and that every session of the
/// service uses: text or numbers that do not fit are errors, never cut.
pub const SQL_MODE: &str = "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION";

/// The statements of a script: they end with a semicolon at the end of a line.
pub fn statements(script: &str) -> impl Iterator<Item = &str> {
    script.split(";\n").map(str::trim).filter(|s| !normalise(s).is_empty())
}

/// The error numbers, 45001 and up, that a procedure raises or hands to one that does.
pub fn raised(source: &Source) -> impl Iterator<Item = u16> {
    let words = source.text.split(|c: char| !c.is_ascii_alphanumeric());
    words
        .filter(|word| word.len() == 5 && word.starts_with("45") && *word != "45000")
        .filter_map(|word| word.parse().ok())
}

/// `sql` without comments and with single spaces, quoted text untouched, so
/// that texts can be compared that went through different clients (the `mysql`
/// client drops comments). Comments that a server executes (`/*!`) stay.
pub fn normalise(sql: &str) -> String {
    let bytes = sql.as_bytes();
    let mut out: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut at = 0;
    let space = |out: &mut Vec<u8>| {
        if !out.is_empty() && out.last() != Some(&b' ') {
            out.push(b' ');
        }
    };
    while at < bytes.len() {
        let rest = &bytes[at..];
        let line_comment =
            rest[0] == b'#' || (rest.starts_with(b"--") && rest.get(2).is_none_or(|c| *c <= b' '));
        let block_comment = rest.starts_with(b"/*")
            && !rest.starts_with(b"/*!")
            && !rest.starts_with(b"/*M!")
            && !rest.starts_with(b"/*+");
        if line_comment {
            at += rest.iter().position(|c| *c == b'\n').unwrap_or(rest.len());
        } else if block_comment {
            let end = rest.windows(2).skip(2).position(|w| w == b"*/");
            at += end.map_or(rest.len(), |e| e + 4);
            space(&mut out);
        } else if matches!(rest[0], b'\'' | b'"' | b'`') {
            let end = quoted_length(rest);
            out.extend_from_slice(&rest[..end]);
            at += end;
        } else if rest[0].is_ascii_whitespace() {
            space(&mut out);
            at += 1;
        } else {
            out.push(rest[0]);
            at += 1;
        }
    }
    let text = String::from_utf8(out).expect("only whole characters were copied or dropped");
    text.trim_end().to_owned()
}

/// How many bytes the quoted text at the start of `rest` has, quotes included.
fn quoted_length(rest: &[u8]) -> usize {
    let quote = rest[0];
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' if quote != b'`' => at += 2,
            c if c == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalised_by_cases() {
        for (sql, expected) in [
            ("a\n  b", "a b"),
            ("-- c\na -- x; y\n b", "a b"),
            ("a/* c */b", "a b"),
            ("/*!50001 a */", "/*!50001 a */"),
            ("'-- no  comment'  x", "'-- no  comment' x"),
            ("'it''s  /* in */'", "'it''s  /* in */'"),
            ("'a\\'  b' # c", "'a\\'  b'"),
            ("v--1", "v--1"),
            ("/* open", ""),
        ] {
            assert_eq!(normalise(sql), expected, "{sql}");
        }
    }

    #[test]
    fn every_file_is_what_its_name_says() {
        for source in VIEWS {
            let head = format!("CREATE OR REPLACE VIEW {} AS", source.name);
            assert!(normalise(source.text).starts_with(&head), "{}", source.name);
        }
        for source in ROUTINES {
            let head = format!("CREATE PROCEDURE {}(", source.name);
            assert!(normalise(source.text).starts_with(&head), "{}", source.name);
        }
        for table in TABLES {
            let head = format!("CREATE TABLE IF NOT EXISTS {table} (");
            assert!(MIGRATIONS.iter().any(|m| m.text.contains(&head)), "{table}");
        }
        for view in VIEWS {
            assert!(ACCOUNT.contains(&format!("GRANT SELECT ON {} ", view.name)), "{}", view.name);
        }
    }

    #[test]
    fn migrations_split_into_statements() {
        let count: usize = MIGRATIONS.iter().map(|m| statements(m.text).count()).sum();
        let others = 2 + 1 + 5 * 4;
        assert_eq!(
            count,
            TABLES.len() + others,
            "a table each; two counters; the pools; five tables altered in four steps each"
        );
    }

    #[test]
    fn the_version_is_that_of_the_last_migration() {
        let last = MIGRATIONS.last().unwrap().name;
        assert!(last.starts_with(&format!("V{VERSION}__")), "{last}");
    }

    #[test]
    fn no_message_can_be_longer_than_mysql_allows() {
        // Literal messages; those that are put together are VARCHAR(128), and
        // the tests against servers use the longest names.
        for source in ROUTINES {
            for part in source.text.split("MESSAGE_TEXT = '").skip(1) {
                let text = part.split('\'').next().unwrap();
                assert!(text.chars().count() <= 128, "{}: {text}", source.name);
            }
        }
    }
}
