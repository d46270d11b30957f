//! Moving types between Redis instances: the rules of `domain::migration`.

use serde_json::{Value, json};

use super::{Store, code, create, field, find, name, request, spec};
use crate::domain::{
    Assignment, ErrorCode, History, InstanceId, InstanceRecord, InstanceSpec, Placement, Seal,
    TypeName, TypeRecord,
};
use crate::ports::{Allocation, Assigned, NextRange, StoreError, Subject, TypeFilter};

/// Three instances, and the histories of their servers.
pub(super) struct World {
    store: Store,
    from: InstanceId,
    to: InstanceId,
    third: InstanceId,
}

const FROM: &str = "conform-from";
const TO: &str = "conform-to";
const THIRD: &str = "conform-by-the-way";

pub(super) async fn world(store: &Store) -> World {
    let add = async |name: &str| {
        let spec = InstanceSpec { name: name.into(), url: "redis://:secret@h:6379".into() };
        store.add_instance(&spec, "suite").await.unwrap().id
    };
    let (from, to, third) = (add(FROM).await, add(TO).await, add(THIRD).await);
    World { store: store.clone(), from, to, third }
}

fn history(text: &str) -> History {
    History::new(text.repeat(40))
}

impl World {
    /// A type on `from` that has the range 1 to 1 000 there, under the history `a`.
    async fn used(&self, text: &str) -> TypeName {
        let mut wanted = spec(text);
        wanted.instance = Some(FROM.into());
        create(&self.store, &wanted).await;
        let first = self.refill(&wanted.name, self.from, "a").await.unwrap();
        assert_eq!((first.range.start(), first.range.end()), (1, 1_001));
        wanted.name
    }

    async fn refill(
        &self,
        name: &TypeName,
        on: InstanceId,
        under: &str,
    ) -> Result<Allocation, StoreError> {
        let history = history(under);
        let target = Some((on, &history));
        self.store.next_range(NextRange { target, ..request(name) }).await
    }

    async fn begin(&self, name: &TypeName, to: &str) -> Result<TypeRecord, StoreError> {
        self.store.begin_migration(name, to, "mover").await
    }

    /// Assigns `name` to `target`, under the history `under`.
    async fn assign(
        &self,
        name: &TypeName,
        (generation, target): (i64, InstanceId),
        under: Option<&str>,
        rest_end: Option<i64>,
    ) -> Result<Assigned, StoreError> {
        let history = under.map(history);
        let seal = Seal { generation, target };
        let assignment = Assignment { seal, history: history.as_ref(), rest_end };
        self.store.assign_type(name, assignment, "mover").await
    }

    async fn instance(&self, id: InstanceId) -> InstanceRecord {
        let all = self.store.instances().await.unwrap();
        all.into_iter().find(|i| i.id == id).expect("it is registered")
    }

    /// Every change since `seen` is about the type, so that all nodes hear of it.
    async fn is_told(&self, seen: i64, name: &TypeName) {
        let changes = self.store.changes_since(seen).await.unwrap();
        assert!(!changes.is_empty(), "a step of a migration is in the feed");
        assert!(changes.iter().all(|c| c.subject == Subject::Type(name.clone())), "{changes:?}");
    }

    /// The newest entry of the audit log is about this, by `mover`.
    async fn is_audited(&self, action: &str, subject: &str, before: Value, after: Value) {
        let entry = self.store.audit(1).await.unwrap().remove(0);
        let (actor, of) = (entry.actor.as_str(), entry.subject.as_str());
        assert_eq!((actor, entry.action.as_str(), of), ("mover", action, subject));
        let value = |text: Option<String>| -> Value {
            serde_json::from_str(&text.expect("a change has both")).expect("JSON")
        };
        assert_eq!((value(entry.before), value(entry.after)), (before, after), "{action}");
    }
}

fn place(
    instance: InstanceId,
    to: Option<InstanceId>,
    generation: i64,
    version: i64,
) -> serde_json::Value {
    let to = to.map(|id| id.0);
    json!({ "instance": instance.0, "moving_to": to, "generation": generation, "version": version })
}

pub(super) async fn from_begin_to_end(world: &World) {
    let World { store, from, to, .. } = world;
    let name = world.used("moved").await;
    let before = find(store, &name).await;
    assert_eq!(before.placement, Placement::default());
    let counts = async || (world.instance(*from).await.types, world.instance(*to).await.types);
    let (on_from, on_to) = counts().await;

    let seen = store.latest_change().await.unwrap();
    let moving = world.begin(&name, TO).await.unwrap();
    let placement = Placement { generation: 1, moving_to: Some(*to), ..Placement::default() };
    assert_eq!((&moving.placement, moving.version), (&placement, before.version + 1));
    assert_eq!((moving.instance, &moving.history), (*from, &before.history), "still there");
    assert_eq!(find(store, &name).await, moving);
    assert_eq!(store.migrations().await.unwrap(), [moving]);
    world.is_told(seen, &name).await;
    let (first, second) = (place(*from, None, 0, 1), place(*from, Some(*to), 1, 2));
    world.is_audited("begin_migration", name.as_str(), first, second.clone()).await;
    let alive = world.refill(&name, *from, "a").await.unwrap();
    assert_eq!(alive.range.start(), 1_001, "the old instance works until it is sealed");

    let seen = store.latest_change().await.unwrap();
    let end = alive.range.end();
    let Assigned { record, keeps_rest } =
        world.assign(&name, (1, *to), Some("b"), Some(end)).await.unwrap();
    assert!(keeps_rest);
    assert_eq!((record.instance, record.history.as_ref()), (*to, Some(&history("b"))));
    assert!(record.placement.moved_ms > 0, "by the store's clock");
    let moved_ms = record.placement.moved_ms;
    let placement = Placement { generation: 2, moving_to: None, moved_from: Some(*from), moved_ms };
    assert_eq!((&record.placement, record.version), (&placement, 3));
    assert_eq!((record.next_id, record.updated_ms), (end, moved_ms));
    assert_eq!(find(store, &name).await, record);
    assert_eq!(store.migrations().await.unwrap(), []);
    assert_eq!(counts().await, (on_from - 1, on_to + 1));
    world.is_told(seen, &name).await;
    world.is_audited("assign_type", name.as_str(), second, place(*to, None, 2, 3)).await;

    // The old instance gets nothing, and the new one goes on above.
    match world.refill(&name, *from, "a").await.unwrap_err() {
        StoreError::NotAssigned { instance, .. } => assert_eq!(instance, *from),
        other => panic!("{other:?}"),
    }
    assert!(store.is_superseded(&name, &history("a")).await.unwrap(), "it was left");
    assert!(!store.is_superseded(&name, &history("b")).await.unwrap());
    let seen = store.latest_change().await.unwrap();
    assert_eq!(world.refill(&name, *to, "b").await.unwrap().range.start(), end);
    assert_eq!(store.latest_change().await.unwrap(), seen, "its history was recorded");

    let late = world.assign(&name, (1, *to), Some("b"), Some(end)).await.unwrap_err();
    assert_eq!(code(late), ErrorCode::Conflict);
    let late = store.undo_migration(&name, 1, "mover").await.unwrap_err();
    assert_eq!(code(late), ErrorCode::Conflict);
    assert_eq!(find(store, &name).await.placement, placement, "a refusal changes nothing");
}

pub(super) async fn refused_beginnings(world: &World) {
    let World { store, to, .. } = world;
    let name = world.used("not-moved").await;
    let seen = store.latest_change().await.unwrap();
    assert_eq!(field(world.begin(&name, FROM).await.unwrap_err()), "instance");
    let nowhere = world.begin(&name, "conform-nowhere").await.unwrap_err();
    assert_eq!(code(nowhere), ErrorCode::UnknownInstance);
    let nobody = super::name("nobody");
    for error in [
        world.begin(&nobody, TO).await.unwrap_err(),
        world.assign(&nobody, (1, *to), None, None).await.unwrap_err(),
        store.undo_migration(&nobody, 1, "mover").await.unwrap_err(),
    ] {
        assert_eq!(code(error), ErrorCode::UnknownType);
    }
    let nowhere = InstanceId(to.0 + 1_000);
    let error = world.assign(&name, (1, nowhere), None, None).await.unwrap_err();
    assert_eq!(code(error), ErrorCode::UnknownInstance);
    assert_eq!(store.latest_change().await.unwrap(), seen);
    // By number, as by name; and not twice at once.
    world.begin(&name, &to.to_string()).await.unwrap();
    assert_eq!(code(world.begin(&name, THIRD).await.unwrap_err()), ErrorCode::Conflict);
    store.undo_migration(&name, 1, "mover").await.unwrap();
}

pub(super) async fn undone(world: &World) {
    let World { store, from, to, .. } = world;
    let name = world.used("undone").await;
    world.begin(&name, TO).await.unwrap();
    for generation in [0, 2] {
        let error = store.undo_migration(&name, generation, "mover").await.unwrap_err();
        assert_eq!(code(error), ErrorCode::Conflict, "generation {generation}");
    }
    let seen = store.latest_change().await.unwrap();
    let still = store.undo_migration(&name, 1, "mover").await.unwrap();
    let placement = Placement { generation: 2, ..Placement::default() };
    assert_eq!((&still.placement, still.instance, still.version), (&placement, *from, 3));
    assert_eq!(find(store, &name).await, still);
    assert_eq!(store.migrations().await.unwrap(), []);
    world.is_told(seen, &name).await;
    let (before, after) = (place(*from, Some(*to), 1, 2), place(*from, None, 2, 3));
    world.is_audited("undo_migration", name.as_str(), before, after).await;
    let late = world.assign(&name, (1, *to), Some("b"), Some(1_001)).await.unwrap_err();
    assert_eq!(code(late), ErrorCode::Conflict, "whoever was at it is told");
    let again = store.undo_migration(&name, 2, "mover").await.unwrap_err();
    assert_eq!(code(again), ErrorCode::Conflict);
    assert_eq!(world.refill(&name, *from, "a").await.unwrap().range.start(), 1_001);
    // Undone and begun again: the first one's seal is too old.
    assert_eq!(world.begin(&name, TO).await.unwrap().placement.generation, 3);
    let late = world.assign(&name, (1, *to), Some("b"), None).await.unwrap_err();
    assert_eq!(code(late), ErrorCode::Conflict);
    world.assign(&name, (3, *to), Some("b"), None).await.unwrap();
}

pub(super) async fn what_is_left(world: &World) {
    let World { store, from, to, .. } = world;
    let kept = async |name: &TypeName, rest_end| {
        let assigned = world.assign(name, (1, *to), Some("b"), rest_end).await.unwrap();
        assert_eq!(assigned.record.instance, *to, "moved in any case");
        assigned.keeps_rest
    };
    // Two ranges, and what is left ends with the second or with the first of them.
    for (text, rest_end, expected) in
        [("rest-second", 2_001, true), ("rest-within", 1_002, true), ("rest-first", 1_001, false)]
    {
        let name = world.used(text).await;
        world.begin(&name, TO).await.unwrap();
        world.refill(&name, *from, "a").await.unwrap();
        assert_eq!(kept(&name, Some(rest_end)).await, expected, "{text}");
    }
    // What nodes and people took for themselves was never on the old instance.
    let name = world.used("rest-leased").await;
    world.begin(&name, TO).await.unwrap();
    super::next(store, &name).await;
    store.reserve(&name, 7, 0, "suite").await.unwrap();
    assert!(kept(&name, Some(1_001)).await);

    let name = world.used("rest-none").await;
    world.begin(&name, TO).await.unwrap();
    assert!(!kept(&name, None).await);

    // A store that has forgotten the migration, or that another one was meant.
    let name = world.used("rest-forgotten").await;
    let assigned = world.assign(&name, (7, *to), Some("b"), Some(1_001)).await.unwrap();
    assert!(!assigned.keeps_rest, "perhaps it was published already");
    assert_eq!((assigned.record.instance, assigned.record.placement.generation), (*to, 8));
    let name = world.used("rest-ahead").await;
    world.begin(&name, TO).await.unwrap();
    assert!(!world.assign(&name, (2, *to), Some("b"), Some(1_001)).await.unwrap().keeps_rest);
    let name = world.used("rest-elsewhere").await;
    world.begin(&name, THIRD).await.unwrap();
    assert!(!kept(&name, Some(1_001)).await);
    let name = world.used("rest-not-begun").await;
    let assigned = world.assign(&name, (0, *to), Some("b"), Some(1_001)).await.unwrap();
    assert!(!assigned.keeps_rest);
}

pub(super) async fn there_and_back(world: &World) {
    let World { store, from, to, .. } = world;
    let name = world.used("back").await;
    world.begin(&name, TO).await.unwrap();
    world.assign(&name, (1, *to), Some("b"), None).await.unwrap();
    world.refill(&name, *to, "b").await.unwrap();
    world.begin(&name, FROM).await.unwrap();
    let back = world.assign(&name, (3, *from), Some("a"), None).await.unwrap().record;
    assert_eq!((back.instance, back.history.as_ref()), (*from, Some(&history("a"))));
    assert_eq!((back.placement.generation, back.placement.moved_from), (4, Some(*to)));
    assert!(!store.is_superseded(&name, &history("a")).await.unwrap(), "current again");
    assert!(store.is_superseded(&name, &history("b")).await.unwrap());
    assert_eq!(world.refill(&name, *from, "a").await.unwrap().range.start(), 2_001);
    assert!(matches!(
        world.refill(&name, *to, "b").await.unwrap_err(),
        StoreError::NotAssigned { .. }
    ));
    // To where it is already: a store that forgot only the last step.
    let again = world.assign(&name, (9, *from), Some("a"), None).await.unwrap().record;
    assert_eq!(again.placement.generation, 10);
    assert_eq!(again.placement.moved_from, back.placement.moved_from);
    assert_eq!(again.placement.moved_ms, back.placement.moved_ms);
    // Without a history the one that it has stays.
    let kept = world.assign(&name, (10, *to), None, None).await.unwrap().record;
    assert_eq!(kept.history, again.history);
}

pub(super) async fn a_replaced_server_does_not_come_back(world: &World) {
    let World { from, to, .. } = world;
    let name = world.used("replaced").await;
    // The server is replaced twice while the type is there: `d` is the last one. The
    // names sort the other way round, and all of it takes less than a millisecond.
    world.refill(&name, *from, "e").await.unwrap();
    world.refill(&name, *from, "d").await.unwrap();
    world.begin(&name, TO).await.unwrap();
    world.assign(&name, (1, *to), Some("b"), None).await.unwrap();
    let before = find(&world.store, &name).await;
    for old in ["a", "e", "b"] {
        match world.assign(&name, (2, *from), Some(old), None).await.unwrap_err() {
            StoreError::Superseded { name: of, history: told } => {
                assert_eq!((of, told), (name.to_string(), history(old).to_string()));
            }
            other => panic!("{old}: {other:?}"),
        }
    }
    assert_eq!(find(&world.store, &name).await, before, "nothing happened");
    world.assign(&name, (2, *from), Some("d"), None).await.unwrap();
    // One that nobody knows is a new server; it is the last one now.
    world.assign(&name, (3, *to), Some("b"), None).await.unwrap();
    world.assign(&name, (4, *from), Some("c"), None).await.unwrap();
    world.assign(&name, (5, *to), Some("b"), None).await.unwrap();
    let error = world.assign(&name, (6, *from), Some("d"), None).await.unwrap_err();
    assert!(matches!(error, StoreError::Superseded { .. }), "{error:?}");
    world.assign(&name, (6, *from), Some("c"), None).await.unwrap();
}

/// One of many ends a migration, and a refill at the same time counts, or is refused.
pub(super) async fn concurrent_assignments(world: &World) {
    let store = &world.store;
    for round in 0..12 {
        let name = world.used(&format!("race-{round}")).await;
        world.begin(&name, TO).await.unwrap();
        let (from, to) = (world.from, world.to);
        let (refiller, of) = (store.clone(), name.clone());
        let refill = tokio::spawn(async move {
            let history = history("a");
            let target = Some((from, &history));
            refiller.next_range(NextRange { target, ..request(&of) }).await
        });
        let callers: Vec<_> = (0..6)
            .map(|_| {
                let (store, name) = (store.clone(), name.clone());
                tokio::spawn(async move {
                    let history = history("b");
                    let seal = Seal { generation: 1, target: to };
                    let assignment =
                        Assignment { seal, history: Some(&history), rest_end: Some(1_001) };
                    store.assign_type(&name, assignment, "mover").await
                })
            })
            .collect();
        let mut kept = Vec::new();
        for caller in callers {
            match caller.await.unwrap() {
                Ok(assigned) => kept.push(assigned.keeps_rest),
                Err(error) => assert_eq!(code(error), ErrorCode::Conflict),
            }
        }
        let expected = match refill.await.unwrap() {
            Ok(allocation) => {
                assert_eq!(allocation.range.start(), 1_001);
                false
            }
            Err(StoreError::NotAssigned { .. }) => true,
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(kept, [expected], "exactly one; and it knows of a refill before it");
    }
}

pub(super) async fn types_of_an_instance(world: &World) {
    let World { store, third, .. } = world;
    let mut names = Vec::new();
    for text in ["of-third-a", "of-third-b", "of-third-c"] {
        let mut wanted = spec(text);
        wanted.instance = Some(THIRD.into());
        names.push(create(store, &wanted).await.name);
    }
    let page = async |after: Option<&TypeName>, limit| {
        let after = after.map(|name| name.to_string());
        let filter = TypeFilter { instance: Some(*third), after, limit, ..TypeFilter::default() };
        let page = store.list_types(&filter).await.unwrap();
        (page.items.into_iter().map(|t| t.name).collect::<Vec<_>>(), page.more)
    };
    assert_eq!(page(None, 2).await, (names[..2].to_vec(), true));
    assert_eq!(page(Some(&names[1]), 2).await, (names[2..].to_vec(), false));
    world.begin(&names[0], TO).await.unwrap();
    world.begin(&names[1], TO).await.unwrap();
    let moving = store.migrations().await.unwrap();
    let told: Vec<_> = moving.iter().map(|t| (&t.name, t.placement.moving_to)).collect();
    assert_eq!(told, [(&names[0], Some(world.to)), (&names[1], Some(world.to))], "by name");
    world.assign(&names[0], (1, world.to), None, None).await.unwrap();
    store.undo_migration(&names[1], 1, "mover").await.unwrap();
    assert_eq!(page(None, 9).await.0, names[1..]);
}

pub(super) async fn draining(world: &World) {
    let World { store, from, to, third } = world;
    let drain = async |name: &str, to: Option<&str>| store.drain_instance(name, to, "mover").await;
    for (from, to) in [(FROM, FROM), (FROM, &from.to_string())] {
        assert_eq!(field(drain(from, Some(to)).await.unwrap_err()), "instance");
    }
    for (from, to) in [("conform-nowhere", Some(TO)), (FROM, Some("conform-nowhere"))] {
        assert_eq!(code(drain(from, to).await.unwrap_err()), ErrorCode::UnknownInstance);
    }
    let seen = store.latest_change().await.unwrap();
    let drained = drain(FROM, Some(&to.to_string())).await.unwrap();
    assert_eq!((drained.id, drained.drain_to), (*from, Some(*to)));
    assert!(drained.url.contains("secret"), "nodes connect with what is answered");
    assert_eq!(world.instance(*from).await, drained);
    let connections = store.connections().await.unwrap();
    let told = |id| connections.iter().find(|i| i.id == id).unwrap().drain_to;
    assert_eq!((told(*from), told(*to)), (Some(*to), None));
    let changes = store.changes_since(seen).await.unwrap();
    assert!(changes.iter().any(|c| c.subject == Subject::Instances), "nodes hear of it");
    let (before, after) = (json!({ "drain_to": null }), json!({ "drain_to": to.0 }));
    world.is_audited("drain_redis_instance", FROM, before.clone(), after.clone()).await;

    // It takes no types, in no way; the target does.
    let mut wanted = spec("drained");
    wanted.instance = Some(FROM.into());
    assert_eq!(field(store.create_type(&wanted, "suite").await.unwrap_err()), "instance");
    wanted.instance = Some(TO.into());
    create(store, &wanted).await;
    assert_eq!(field(world.begin(&wanted.name, FROM).await.unwrap_err()), "instance");
    assert_eq!(field(drain(THIRD, Some(FROM)).await.unwrap_err()), "instance");
    // What is under way may arrive.
    world.begin(&wanted.name, THIRD).await.unwrap();
    drain(THIRD, Some(TO)).await.unwrap();
    let arrived = world.assign(&wanted.name, (1, *third), Some("c"), None).await.unwrap();
    assert_eq!(arrived.record.instance, *third);
    drain(THIRD, None).await.unwrap();

    // Who asks for none gets the first that takes types.
    let first = store.instances().await.unwrap().remove(0);
    drain(&first.name, Some(TO)).await.unwrap();
    let all = store.instances().await.unwrap();
    let expected = all.iter().find(|i| i.drain_to.is_none()).unwrap().id;
    assert_ne!(expected, first.id);
    assert_eq!(create(store, &spec("anywhere")).await.instance, expected);
    drain(&first.id.to_string(), None).await.unwrap();
    assert_eq!(create(store, &spec("anywhere-again")).await.instance, first.id);

    assert_eq!(drain(FROM, None).await.unwrap().drain_to, None);
    world.is_audited("drain_redis_instance", FROM, after, before).await;
    wanted.name = name("no-more-drained");
    wanted.instance = Some(FROM.into());
    create(store, &wanted).await;
}

pub(super) async fn removing(world: &World) {
    let World { store, from, .. } = world;
    let add = async |name: &str| {
        let spec = InstanceSpec { name: name.into(), url: "redis://h".into() };
        store.add_instance(&spec, "suite").await.unwrap().id
    };
    let (last, spare) = ("conform-last", "conform-spare");
    let (last_id, spare_id) = (add(last).await, add(spare).await);
    let kept = async |name: &str, why: &str| {
        let error = store.remove_instance(name, "suite").await.unwrap_err();
        assert_eq!(code(error), ErrorCode::Conflict, "{why}");
    };
    let name = world.used("removing").await;
    world.begin(&name, last).await.unwrap();
    kept(last, "a type is on its way to it").await;
    store.drain_instance(spare, Some(last), "suite").await.unwrap();
    store.undo_migration(&name, 1, "suite").await.unwrap();
    kept(last, "another one is drained to it").await;
    world.begin(&name, last).await.unwrap();
    world.assign(&name, (3, last_id), Some("b"), None).await.unwrap();
    world.begin(&name, FROM).await.unwrap();
    kept(last, "the type is still there").await;
    world.assign(&name, (5, *from), Some("a"), None).await.unwrap();
    store.remove_instance(spare, "suite").await.expect("one that is drained, and empty");
    store.remove_instance(last, "suite").await.expect("nothing needs it any more");
    let record = find(store, &name).await;
    assert_eq!(record.placement.moved_from, Some(last_id), "known, though it is gone");
    let left = store.instances().await.unwrap();
    assert!(left.iter().all(|i| i.id != last_id && i.id != spare_id));
    let error = world.begin(&name, &last_id.to_string()).await.unwrap_err();
    assert_eq!(code(error), ErrorCode::UnknownInstance);
}
