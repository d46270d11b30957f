use super::*;
use crate::domain::{InstanceSpec, TypeName, TypeSpec};

const OLD: InstanceId = InstanceId(1);
const NEW: InstanceId = InstanceId(2);
const NOTHING: Known<'_> = Known { last_history: None, is_known: false, allocated_above: false };

fn instance(id: InstanceId) -> InstanceRecord {
    InstanceSpec { name: format!("r{id}"), url: "redis://h:1".into() }.into_record(id)
}

fn record() -> TypeRecord {
    TypeRecord::created(&TypeSpec::new(TypeName::parse("order").unwrap()), OLD, 5)
}

fn moving() -> TypeRecord {
    record().begin_move(&instance(NEW), 6).unwrap()
}

fn assignment(generation: i64, history: Option<&History>) -> Assignment<'_> {
    Assignment { seal: Seal { generation, target: NEW }, history, rest_end: Some(100) }
}

#[test]
fn a_seal_reads_back() {
    let seal = Seal { generation: 17, target: InstanceId(3) };
    assert_eq!(Seal::parse(&seal.to_string()), Some(seal));
    for text in ["", "1", "1 ", "x 1", "1 2 3"] {
        assert_eq!(Seal::parse(text), None, "{text:?}");
    }
}

#[test]
fn a_migration_from_begin_to_end() {
    let moving = moving();
    assert_eq!(moving.placement.generation, 1);
    assert_eq!((moving.version, moving.instance), (2, OLD));
    let history = History::new("new");
    let (moved, keeps_rest) = moving.assign(assignment(1, Some(&history)), NOTHING, 7).unwrap();
    assert!(keeps_rest);
    assert_eq!((moved.instance, moved.history.as_ref()), (NEW, Some(&history)));
    let after = Placement { generation: 2, moving_to: None, moved_from: Some(OLD), moved_ms: 7 };
    assert_eq!((moved.placement, moved.version), (after, 3));
}

#[test]
fn only_one_ends_it() {
    let (moved, _) = moving().assign(assignment(1, None), NOTHING, 7).unwrap();
    let again = moved.assign(assignment(1, None), NOTHING, 8).unwrap_err();
    assert!(matches!(again, NotAssigned::Rule(e) if e.code == ErrorCode::Conflict));
    assert_eq!(moved.undo_move(1, 8).unwrap_err().code, ErrorCode::Conflict);
    let undone = moving().undo_move(1, 8).unwrap();
    assert_eq!((undone.placement.generation, undone.placement.moving_to), (2, None));
    assert!(undone.assign(assignment(1, None), NOTHING, 9).is_err());
    assert_eq!(undone.undo_move(2, 9).unwrap_err().code, ErrorCode::Conflict);
}

#[test]
fn what_is_left_stays_behind_unless_it_is_safe() {
    let above = Known { allocated_above: true, ..NOTHING };
    assert!(!moving().assign(assignment(1, None), above, 7).unwrap().1);
    let nothing_left = Assignment { rest_end: None, ..assignment(1, None) };
    assert!(!moving().assign(nothing_left, NOTHING, 7).unwrap().1);
    // The store forgot the migration: perhaps the rest was published already.
    let (moved, keeps_rest) = record().assign(assignment(1, None), NOTHING, 7).unwrap();
    assert!(!keeps_rest);
    assert_eq!((moved.instance, moved.placement.generation), (NEW, 2));
    let mut elsewhere = moving();
    elsewhere.placement.moving_to = Some(InstanceId(3));
    assert!(!elsewhere.assign(assignment(1, None), NOTHING, 7).unwrap().1);
}

#[test]
fn a_replaced_server_does_not_come_back() {
    let (old, new) = (History::new("old"), History::new("new"));
    for (last, known, refused) in
        [(None, false, false), (Some(&old), true, false), (Some(&new), true, true)]
    {
        let known = Known { last_history: last, is_known: known, allocated_above: false };
        let result = moving().assign(assignment(1, Some(&old)), known, 7);
        assert_eq!(result == Err(NotAssigned::Superseded), refused, "{known:?}");
    }
}

#[test]
fn refused_beginnings() {
    let there = record().begin_move(&instance(OLD), 6).unwrap_err();
    assert_eq!(there.field, Some("instance"));
    let twice = moving().begin_move(&instance(InstanceId(3)), 6).unwrap_err();
    assert_eq!(twice.code, ErrorCode::Conflict);
    let mut draining = instance(NEW);
    draining.drain_to = Some(OLD);
    assert_eq!(record().begin_move(&draining, 6).unwrap_err().field, Some("instance"));
}

#[test]
fn what_a_seal_means() {
    let seal = Seal { generation: 1, target: NEW };
    let (assigned, _) = moving().assign(assignment(1, None), NOTHING, 7).unwrap();
    let undone = moving().undo_move(1, 8).unwrap();
    for (on, record, expected) in [
        (OLD, moving(), Meaning::Unfinished),
        (OLD, record(), Meaning::Unfinished),
        (OLD, assigned.clone(), Meaning::Elsewhere),
        (OLD, undone, Meaning::Outdated),
        (NEW, assigned, Meaning::Outdated),
    ] {
        assert_eq!(meaning(seal, on, &record), expected, "{:?}", record.placement);
    }
}
