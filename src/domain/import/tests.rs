//! Tables of texts, and what holds whatever the text is.

use proptest::prelude::*;

use super::export::Exported;
use super::*;
use crate::domain::options::position_in;
use crate::domain::{
    AtLimit, InstanceId, Opaque, OpaqueKey, Period, Sites, State, TypeName, TypeOptions,
};

/// 2026-11-21T09:30:00Z; day 20 778 since 1970.
const NOW_MS: i64 = 1_795_253_400_000;
const DAY: i64 = 20_778;

fn rules() -> Rules {
    Rules { gap: Gap::Ids(0), mode: None, instance: None, now_ms: NOW_MS }
}

fn planned(text: &str, rules: &Rules) -> Vec<Item> {
    let source = read_text(text, None).unwrap_or_else(|error| panic!("{error}\n{text}"));
    plan(&source, rules).unwrap()
}

fn one(text: &str, rules: &Rules) -> Item {
    let mut items = planned(text, rules);
    assert_eq!(items.len(), 1, "{items:?}");
    items.remove(0)
}

fn good(item: &Item) -> &Planned {
    item.plan.as_ref().unwrap_or_else(|why| panic!("{why}"))
}

const LEAF_DUMP: &str = "-- MariaDB dump 10.19  Distrib 10.11.6-MariaDB\n--\n-- Host: localhost    \
Database: leaf\n/*!40101 SET NAMES utf8mb4 */;\nDROP TABLE IF EXISTS `leaf_alloc`;\n\
CREATE TABLE `leaf_alloc` (\n  `biz_tag` varchar(128) NOT NULL DEFAULT '',\n  \
`max_id` bigint(20) NOT NULL DEFAULT 1,\n  `step` int(11) NOT NULL COMMENT 'a, (b); c',\n  \
`description` varchar(256) DEFAULT NULL,\n  `update_time` timestamp NOT NULL,\n  \
PRIMARY KEY (`biz_tag`), KEY `x` (`step`,`max_id`)\n) ENGINE=InnoDB;\n\
LOCK TABLES `leaf_alloc` WRITE;\n/*!40000 ALTER TABLE `leaf_alloc` DISABLE KEYS */;\n\
INSERT INTO `leaf_alloc` VALUES\n('order',5001,2000,'Tom''s \\'x\\' ; -- (1,2)\\n','2024-01-01 00:00:00'),\n\
('user',1,100,NULL,'2024-01-01 00:00:00');\n/*!40000 ALTER TABLE `leaf_alloc` ENABLE KEYS */;\n\
UNLOCK TABLES;\n\n-- Dump completed on 2024-01-02  3:04:05\n";

#[test]
fn a_dump_of_leaf() {
    let source = read_text(LEAF_DUMP, None).unwrap();
    assert_eq!(source.kind(), Kind::Leaf);
    let items = planned(LEAF_DUMP, &rules());
    let order = good(&items[0]);
    assert_eq!(
        (items[0].name.as_str(), items[0].highest, items[0].step),
        ("order", 5_000, Some(2_000))
    );
    assert_eq!((order.first_id, order.spec.first_id, order.spec.min_range), (5_001, 5_001, 2_000));
    assert_eq!(order.spec.description, "Tom's 'x' ; -- (1,2)\n");
    let user = good(&items[1]);
    assert_eq!((items[1].highest, user.first_id, user.spec.min_range), (0, 1, 100));
}

#[test]
fn every_system_counts_in_its_own_way() {
    let cases: [(&str, Kind, i64, i64, i64); 9] = [
        // The text, its kind, the highest id there, the first id and min_range here.
        ("biz_tag,max_id,step\norder,1,1000\n", Kind::Leaf, 0, 1, 1_000),
        (
            "biz_tag\tmax_id\tstep\tdescription\norder\t3001\t1000\tNULL\n",
            Kind::Leaf,
            3_000,
            3_001,
            1_000,
        ),
        (
            "biz_type,begin_id,max_id,step,delta,remainder\norder,1,200001,100000,1,0\n",
            Kind::Tinyid,
            200_001,
            200_002,
            100_000,
        ),
        ("biz_type,begin_id,max_id,step\norder,500,0,10\n", Kind::Tinyid, 500, 501, 10),
        (
            "id_name,id_start,last_range,min_range,max_range\norder,7000,2000,500,9000\n",
            Kind::Original,
            7_000,
            7_001,
            500,
        ),
        (
            "name,last_max_id,last_fetch_time\norder,4200,1700000000\n",
            Kind::Cosid,
            4_200,
            4_201,
            1_000,
        ),
        ("name,next_id\norder,1\n", Kind::Csv, 0, 1, 1_000),
        (
            "name,next_id,step,description,mode,prefix\norder,77,20,\"a, \"\"b\"\"\",segment,'-x\n",
            Kind::Csv,
            76,
            77,
            20,
        ),
        // Half of what one database issues is the other one's.
        (
            "biz_type,max_id,step,delta,remainder\norder,1001,100,2,1\n",
            Kind::Tinyid,
            1_001,
            1_003,
            50,
        ),
    ];
    for (text, kind, highest, first, min_range) in cases {
        let item = one(text, &rules());
        let plan = good(&item);
        assert_eq!(read_text(text, None).unwrap().kind(), kind, "{text}");
        assert_eq!(
            (item.highest, plan.first_id, plan.spec.min_range),
            (highest, first, min_range),
            "{text}"
        );
        plan.spec.validate().unwrap();
    }
    let csv = one(cases[7].0, &rules());
    let spec = &good(&csv).spec;
    assert_eq!(
        (spec.mode, spec.prefix.as_str(), spec.description.as_str()),
        (Mode::Segment, "-x", "a, \"b\"")
    );
}

#[test]
fn the_original_keeps_its_settings() {
    let text = "id_name,id_prifx,id_start,last_range,max_range,min_range,state,min_load_interval,\
                load_percentage,lock_expire,project_name,applicant,other_info\n\
                order,OD,1000,0,100000,10,2,1800,0.25,60,shop,ann,orders\n";
    let item = one(text, &rules());
    let plan = good(&item);
    let spec = &plan.spec;
    assert!(plan.retired);
    assert_eq!((spec.first_id, spec.prefix.as_str()), (1_001, "OD"));
    assert_eq!((spec.min_range, spec.max_range, spec.lock_ttl_ms), (10, 100_000, 60_000));
    assert_eq!((spec.load_interval_ms, spec.load_percentage.as_fraction()), (1_800_000, 0.25));
    assert_eq!(spec.description, "project: shop; applicant: ann; orders");
}

#[test]
fn tinyid_beside_its_other_databases_or_instead_of_them() {
    let head = "biz_type,max_id,step,delta,remainder\n";
    let beside = one(&format!("{head}order,100,10,3,2\n"), &rules());
    let plan = good(&beside);
    assert_eq!(plan.spec.mode, Mode::Segment);
    assert_eq!(plan.spec.options.sites, Some(Sites { count: 3, site: 2 }));
    // Above 100: 101 = 33 × 3 + 2.
    assert_eq!((plan.first_id, plan.spec.first_id), (101, 33));
    let gap = Rules { gap: Gap::Ids(1), ..rules() };
    assert_eq!(good(&one(&format!("{head}order,100,10,3,2\n"), &gap)).first_id, 104);

    let instead = one(&format!("{head}order,100,10,2,0\norder,250,10,2,1\n"), &rules());
    let plan = good(&instead);
    assert_eq!((plan.first_id, plan.spec.mode), (251, Mode::Segment));
    assert_eq!(plan.spec.options.sites, None);

    for (rows, mode, expected) in [
        ("order,100,10,3,0\norder,100,10,3,1\n", None, "only 2 of 3 databases"),
        ("order,100,10,2,0\norder,100,10,2,0\n", None, "more than once"),
        ("order,100,10,2,0\norder,100,10,3,0\n", None, "differs"),
        ("order,100,10,2,2\n", None, "remainder"),
        ("order,100,10,5000,0\n", None, "delta"),
        ("order,100,10,2,1\n", Some(Mode::Strict), "all databases"),
    ] {
        let item = one(&format!("{head}{rows}"), &Rules { mode, ..rules() });
        let why = item.plan.unwrap_err();
        assert!(why.contains(expected) && why.contains("line "), "{rows}: {why}");
    }
}

#[test]
fn shards_of_an_application_are_one_type() {
    let text = "app_id,shard_id,max_id,step,max_limit_id\n7,0,500,100,1000000\n7,63,900,100,1000000\n\
                300,0,1,1,10\n8,64,1,1,10\n9,0,1,1,10\n9,0,2,1,10\n10,0,10,1,10\n";
    let items = planned(text, &rules());
    let plan = good(items.iter().find(|i| i.name == "app-7").unwrap());
    assert_eq!((plan.spec.mode, plan.spec.options.app_id), (Mode::Sharded, Some(7)));
    assert_eq!((plan.spec.first_id, plan.first_id), (901, 901 << 14 | 7));
    assert_eq!(plan.spec.max_position(), 1_000_000);
    for (name, expected) in [
        ("app-300", "255"),
        ("app-8", "shard_id"),
        ("app-9", "twice"),
        ("app-10", "nothing is left"),
    ] {
        let item = items.iter().find(|i| i.name == name).unwrap();
        assert!(item.plan.as_ref().unwrap_err().contains(expected), "{item:?}");
    }
}

#[test]
fn gaps_by_cases() {
    let text = "biz_tag,max_id,step\norder,1001,300\n";
    let cosid = "name,last_max_id\norder,999\n";
    for (text, gap, first) in [
        (text, Gap::Ids(0), 1_001),
        (text, Gap::Ids(5_000), 6_001),
        (text, Gap::Percent(50), 1_151),
        (text, Gap::Percent(1), 1_004),
        // Without a step it is a share of what was used, rounded up.
        (cosid, Gap::Percent(10), 1_100),
    ] {
        assert_eq!(good(&one(text, &Rules { gap, ..rules() })).first_id, first, "{gap:?}");
    }
    for (gap, field) in [
        (Gap::Ids(-1), "gap"),
        (Gap::Ids(MAX_GAP + 1), "gap"),
        (Gap::Percent(-1), "gap.percent"),
        (Gap::Percent(1_001), "gap.percent"),
    ] {
        let source = read_text(text, None).unwrap();
        assert_eq!(plan(&source, &Rules { gap, ..rules() }).unwrap_err().field, Some(field));
    }
    let sharded = Rules { mode: Some(Mode::Sharded), ..rules() };
    let source = read_text(text, None).unwrap();
    assert_eq!(plan(&source, &sharded).unwrap_err().field, Some("mode"));
}

#[test]
fn what_is_wrong_with_one_type_leaves_the_others_alone() {
    let text = "biz_tag,max_id,step\n\
                good,10,1\n\
                _bad,10,1\n\
                word,ten,1\n\
                less,-5,1\n\
                huge,9223372036854775808,1\n\
                full,9223372036854775807,1\n\
                ,1,1\n\
                twice,1,1\n\
                twice,2,1\n\
                none,,1\n";
    let items = planned(text, &rules());
    assert_eq!(items.len(), 9);
    assert!(items[0].plan.is_ok());
    for (name, expected) in [
        ("_bad", "not legal"),
        ("word", "line 4, column 6: max_id \"ten\" is no whole number"),
        ("less", "line 5, column 6: max_id \"-5\" is out of range"),
        ("huge", "line 6, column 6: max_id"),
        ("full", "above the highest"),
        ("", "not legal"),
        ("twice", "2 times"),
        ("none", "line 11, column 6: max_id is missing"),
    ] {
        let item = items.iter().find(|item| item.name == name).unwrap();
        let why = item.plan.as_ref().unwrap_err();
        assert!(why.contains(expected), "{name}: {why}");
    }
}

#[test]
fn a_text_that_is_cut_short_is_refused_wherever_the_cut_is() {
    let whole = read_text(LEAF_DUMP, None).unwrap();
    // Within the last line, which is a comment, nothing is lost.
    let end = LEAF_DUMP.find("-- Dump completed").unwrap();
    for (cut, _) in LEAF_DUMP.char_indices().filter(|(at, _)| *at < end) {
        if let Ok(part) = read_text(&LEAF_DUMP[..cut], Some(Kind::Leaf)) {
            panic!("cut at {cut}: {part:?} of {whole:?}\n{}", &LEAF_DUMP[..cut]);
        }
    }
    // Without a first line that tells where it began, the statements tell it.
    let insert = "INSERT INTO leaf_alloc (biz_tag,max_id,step) VALUES ('a',1,2),('b',2,3);\n";
    for cut in 0..insert.trim_end().len() {
        read_text(&insert[..cut], None).unwrap_err();
    }
}

#[test]
fn wrong_texts_are_told_with_their_place() {
    let columns = "INSERT INTO leaf_alloc (biz_tag,max_id,step) VALUES ";
    for (text, field, expected) in [
        ("", "source.text", "empty"),
        ("hello", "source.text", "cut short"),
        ("biz_tag,max_id\n\"a", "source.text", "line 2, column 1: the quote is not closed"),
        ("biz_tag,max_id\n\"a\"b,1", "source.text", "line 2, column 4"),
        ("biz_tag,max_id\na\"b,1", "source.text", "line 2, column 2: a quote in a cell"),
        ("biz_tag,max_id\na\n", "source.text", "line 2, column 1: 1 cells where the header has 2"),
        ("biz_tag,max_id,max_id\n", "source.text", "there twice"),
        ("what,ever\n1,2\n", "format", "cannot be told"),
        (
            "INSERT INTO leaf_alloc VALUES ('a',1);",
            "source.text",
            "columns of leaf_alloc are not told",
        ),
        (&format!("{columns}('a',1);"), "source.text", "line 1, column 59: a row has 3 values"),
        (&format!("{columns}('a',1,2,3);"), "source.text", "a row has 3 values"),
        (&format!("{columns}('a',1+1,2);"), "source.text", "behind a value"),
        (&format!("{columns}('a',NOW(),2);"), "source.text", "\"NOW\" is no plain value"),
        (
            &format!("{columns}('a',1,2) ON DUPLICATE KEY UPDATE step=1;"),
            "source.text",
            "ON DUPLICATE",
        ),
        ("\nUPDATE leaf_alloc SET max_id = 1;", "source.text", "line 2, column 1: UPDATE"),
        (
            "INSERT INTO t (a) VALUES (1); INSERT INTO u (a) VALUES (1);",
            "source.text",
            "none of which",
        ),
        (
            "INSERT INTO leaf_alloc (biz_tag) VALUES ('a'); INSERT INTO cosid (name) VALUES ('b');",
            "format",
            "must be named",
        ),
        ("INSERT INTO leaf_alloc (biz_tag,step) VALUES ('a',1);", "format", "cannot be told"),
        ("DELIMITER ;;\nCREATE TRIGGER x;;\n", "source.text", "never set back"),
        ("/* no end", "source.text", "comment does not end"),
        ("{\"idgen_export\":1,\"types\":[", "source.text", "line 1, column 27"),
        ("{\"idgen_export\":2,\"types\":[]}", "source.text", "version 2"),
        ("{\"idgen_export\":1,\"types\":[],\"x\":1}", "source.text", "unknown field"),
    ] {
        let error = read_text(text, None).unwrap_err();
        assert_eq!(error.field, Some(field), "{text}: {error}");
        assert!(error.message.contains(expected), "{text}: {error}");
    }
    let error = read_text("biz_tag,step\na,1\n", Some(Kind::Leaf)).unwrap_err();
    assert!(error.message.contains("no column max_id"), "{error}");
}

#[test]
fn dumps_by_cases() {
    let row = |text: &str| match read_text(text, Some(Kind::Leaf)).unwrap() {
        Source::Table(_, table) => table
            .rows
            .iter()
            .flat_map(|r| r.cells.iter().map(|c| c.text.clone()))
            .collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let some = |text: &str| Some(text.to_owned());
    for (text, expected) in [
        // Another name of the table, where it is the only one; that of a database.
        (
            "insert into `db`.`my``tags` (`biz_tag`, max_id) values ('a', 1);",
            vec![some("a"), some("1")],
        ),
        (
            "INSERT IGNORE INTO leaf_alloc(biz_tag,max_id)VALUE(\"q\"\"x\",-0.5e-3);",
            vec![some("q\"x"), some("-0.5e-3")],
        ),
        (
            "INSERT INTO leaf_alloc (biz_tag,max_id) VALUES (_binary 'a\\0\\Z\\%',NULL);",
            vec![some("a\0\u{1a}%"), None],
        ),
        (
            "# c ;\n-- c ' ;\n/* ; ' */ INSERT INTO leaf_alloc (biz_tag,max_id) VALUES ('a',TRUE);",
            vec![some("a"), some("1")],
        ),
        (
            "SET x = 'a;b'; DELIMITER ;;\nCREATE TRIGGER t BEGIN INSERT INTO leaf_alloc VALUES (1); END ;;\nDELIMITER ;\nINSERT INTO leaf_alloc (biz_tag,max_id) VALUES ('a',1);",
            vec![some("a"), some("1")],
        ),
        (
            "INSERT INTO other (x) VALUES (1); INSERT INTO leaf_alloc (biz_tag,max_id) VALUES ('a',1); INSERT INTO leaf_alloc (biz_tag,max_id) VALUES ('b',2);",
            vec![some("a"), some("1"), some("b"), some("2")],
        ),
        (
            "CREATE TABLE IF NOT EXISTS leaf_alloc (max_id bigint DEFAULT '1,2', biz_tag varchar(9), PRIMARY KEY (biz_tag), CONSTRAINT c CHECK (max_id in (1,2))); INSERT INTO leaf_alloc VALUES (5,'z');",
            vec![some("5"), some("z")],
        ),
    ] {
        assert_eq!(row(text), expected, "{text}");
    }
}

fn record(change: impl FnOnce(&mut TypeSpec), next_id: i64) -> TypeRecord {
    let mut spec = TypeSpec::new(TypeName::parse("order").unwrap());
    change(&mut spec);
    spec.key = spec.options.opaque.map(|_| OpaqueKey::new([7; 32]));
    spec.validate().unwrap();
    TypeRecord { next_id, ..TypeRecord::created(&spec, InstanceId(3), 0) }
}

fn exported(record: &TypeRecord) -> String {
    let types = serde_json::to_string(&[Exported::from(record)]).unwrap();
    format!("{{\"idgen_export\":1,\"types\":{types}}}")
}

#[test]
fn our_own_types_go_on_where_they_were() {
    let cases: [(&str, TypeRecord, Result<i64, &str>); 10] = [
        ("plain", record(|s| s.prefix = "=1+1".into(), 5_001), Ok(5_001)),
        ("never used", record(|s| s.first_id = 10, 10), Ok(10)),
        (
            "opaque: from the next slice on",
            record(
                |s| {
                    s.max_id = 16_000_000;
                    s.options.opaque = Some(Opaque { slices: 16 });
                },
                5,
            ),
            Ok(1_000_001),
        ),
        (
            "opaque, never used",
            record(
                |s| {
                    s.max_id = 16_000_000;
                    s.options.opaque = Some(Opaque { slices: 16 });
                },
                1,
            ),
            Ok(1),
        ),
        (
            "opaque, in its last slice",
            record(
                |s| {
                    s.max_id = 16_000_000;
                    s.options.opaque = Some(Opaque { slices: 16 });
                },
                15_000_002,
            ),
            Err("nothing is left"),
        ),
        (
            "sites",
            record(
                |s| {
                    s.mode = Mode::Segment;
                    s.options.sites = Some(Sites { count: 4, site: 1 });
                },
                6,
            ),
            Ok(25),
        ),
        ("a calendar series of today", record(daily, position_in(DAY, 5)), Err("present period")),
        ("a calendar series of yesterday", record(daily, position_in(DAY - 1, 5)), Ok(1)),
        (
            "cycle",
            record(
                |s| {
                    s.max_id = 100;
                    s.options.at_limit = AtLimit::Cycle;
                },
                512,
            ),
            Ok(1),
        ),
        ("used up", record(|s| s.max_id = 100, 101), Err("nothing is left")),
    ];
    for (why, record, expected) in cases {
        let item = one(&exported(&record), &rules());
        match (&item.plan, expected) {
            (Ok(plan), Ok(first)) => {
                assert_eq!(plan.first_id, first, "{why}");
                assert_eq!(plan.spec.options, record.options, "{why}");
                assert_eq!(plan.spec.prefix, record.prefix, "{why}");
            }
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{why}: {found}"),
            (found, expected) => panic!("{why}: {found:?}, {expected:?}"),
        }
        // As CSV it is the same, a formula included.
        let csv = format!("{}\r\n{}", export::COLUMNS.join(","), Exported::from(&record).to_csv());
        assert!(!csv.contains(",=") && !csv.contains(",\"="), "{csv}");
        assert_eq!(one(&csv, &rules()), item, "{why}: {csv}");
    }
}

fn daily(spec: &mut TypeSpec) {
    spec.max_id = 999_999;
    spec.options.calendar = Some(Period::Daily);
    spec.options.format = Some("{date:yyMMdd}{seq:06}".into());
}

#[test]
fn an_existing_type_that_could_repeat_ids_is_told() {
    let item = one("biz_tag,max_id,step\norder,5001,10\n", &rules());
    let plan = good(&item);
    assert_eq!(plan.differs(&record(|_| {}, 5_001)), None);
    assert!(plan.differs(&record(|_| {}, 5_000)).unwrap().contains("could issue ids again"));
    let other = record(
        |s| {
            s.mode = Mode::Segment;
            s.options.sites = Some(Sites { count: 2, site: 0 });
        },
        9_000,
    );
    assert!(plan.differs(&other).unwrap().contains("another kind"));
}

fn sql_text(text: &str) -> String {
    let mut quoted = String::from("'");
    for c in text.chars() {
        match c {
            '\'' => quoted.push_str("\\'"),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\0' => quoted.push_str("\\0"),
            '\u{1a}' => quoted.push_str("\\Z"),
            c => quoted.push(c),
        }
    }
    quoted + "'"
}

proptest! {
    #[test]
    fn no_text_ends_the_program(text in ".{0,400}", kind in 0usize..7) {
        for kind in [None, Some(Kind::ALL[kind])] {
            if let Ok(source) = read_text(&text, kind) {
                let _ = plan(&source, &rules());
            }
        }
    }

    #[test]
    fn no_mangled_dump_ends_the_program(at in 0usize..900, len in 0usize..40, noise in "[-'`\"(),;/*#\\\\a0 \n]{0,12}") {
        let chars: Vec<char> = LEAF_DUMP.chars().collect();
        let at = at.min(chars.len());
        let mut text: String = chars[..at].iter().collect();
        text.push_str(&noise);
        text.extend(&chars[(at + len).min(chars.len())..]);
        if let Ok(source) = read_text(&text, Some(Kind::Leaf)) {
            let _ = plan(&source, &rules());
        }
    }

    /// What is written as a dump, or as CSV, is read as it was.
    #[test]
    fn texts_come_back(rows in proptest::collection::vec(("[a-z]{1,8}", 0i64..i64::MAX, ".{0,40}", any::<bool>()), 1..20)) {
        let mut dump = String::from("INSERT INTO `leaf_alloc` (`biz_tag`,`max_id`,`description`) VALUES ");
        let mut csv = String::from("biz_tag,max_id,description\r\n");
        for (n, (name, max_id, text, null)) in rows.iter().enumerate() {
            let comma = if n == 0 { "" } else { ",\n" };
            let written = if *null { "NULL".to_owned() } else { sql_text(text) };
            dump.push_str(&format!("{comma}({},{max_id},{written})", sql_text(name)));
            let cell = if *null { String::new() } else { format!("\"{}\"", text.replace('"', "\"\"")) };
            csv.push_str(&format!("{name},{max_id},{cell}\r\n"));
        }
        dump.push_str(";\n");
        for text in [dump, csv] {
            let Source::Table(kind, table) = read_text(&text, None).unwrap() else { panic!("a table") };
            prop_assert_eq!(kind, Kind::Leaf);
            prop_assert_eq!(table.rows.len(), rows.len());
            for (row, (name, max_id, text, null)) in table.rows.iter().zip(&rows) {
                let found: Vec<_> = row.cells.iter().map(|cell| cell.text.as_deref()).collect();
                let max_id = max_id.to_string();
                let expected = [Some(name.as_str()), Some(&max_id), (!null).then_some(text.as_str())];
                prop_assert_eq!(found, expected);
            }
        }
    }

    /// Whatever a source tells, the first id here is above all of its ids.
    #[test]
    fn no_first_id_was_issued(
        highest in 0i64..i64::MAX - 10_000_000, step in 0i64..1_000_000_000_000, delta in 1i64..50,
        remainder in 0i64..50, gap in 0i64..1_000_000,
    ) {
        let rules = Rules { gap: Gap::Ids(gap), ..rules() };
        let remainder = remainder % delta;
        let text = format!("biz_type,max_id,step,delta,remainder\norder,{highest},{step},{delta},{remainder}\n");
        let item = one(&text, &rules);
        let plan = good(&item);
        prop_assert!(plan.first_id > highest + gap);
        prop_assert!(plan.first_id <= highest + gap + delta);
        prop_assert_eq!(plan.first_id % delta, if delta > 1 { remainder } else { 0 });
        prop_assert_eq!(plan.spec.validate(), Ok(()));
    }
}

#[test]
fn a_retired_type_stays_retired() {
    let retired = TypeRecord { state: State::Retired, ..record(|_| {}, 7) };
    assert!(good(&one(&exported(&retired), &rules())).retired);
    let options = TypeOptions::default();
    assert_eq!(good(&one(&exported(&retired), &rules())).spec.options, options);
}
