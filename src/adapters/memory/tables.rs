//! What the memory store holds, and how its rows hang together.

use std::collections::BTreeMap;

use crate::adapters::audit;
use crate::domain::access::{Account, Credential, SecretHash};
use crate::domain::allocation::Sequence;
use crate::domain::instance::find_instance;
use crate::domain::migration::Known;
use crate::domain::{Error, ErrorCode, History, InstanceId, InstanceRecord, TypeName, TypeRecord};
use crate::ports::{AuditEntry, Change, RangeLogEntry, StoreError, Subject};

#[derive(Clone, Default)]
pub(super) struct Tables {
    pub types: BTreeMap<TypeName, TypeRecord>,
    /// Sequences of sharded types; a shard without a range so far is not there.
    pub shards: BTreeMap<(TypeName, u8), Sequence>,
    /// In the order in which they were recorded.
    pub histories: Vec<(TypeName, History, InstanceId)>,
    pub instances: BTreeMap<InstanceId, InstanceRecord>,
    pub last_instance: i64,
    pub ranges: Vec<(TypeName, RangeLogEntry)>,
    pub changes: Vec<Change>,
    pub audit: Vec<AuditEntry>,
    pub accounts: BTreeMap<String, Account>,
    /// In the order in which they were made, with the hashes of their secrets.
    pub credentials: Vec<(SecretHash, Credential)>,
}

/// An act of a person, for the audit log.
pub(super) struct Audit<'a> {
    pub action: &'a str,
    pub actor: &'a str,
    pub at_ms: i64,
}

pub(super) fn refused(code: ErrorCode, message: String) -> StoreError {
    StoreError::Refused(Error::new(code, message))
}

impl Tables {
    pub fn record(&self, name: &TypeName) -> Result<TypeRecord, StoreError> {
        self.types
            .get(name)
            .cloned()
            .ok_or_else(|| StoreError::Refused(Error::unknown_type(name.as_str())))
    }

    /// Where `record`, or that shard of it, stands.
    pub fn sequence(&self, record: &TypeRecord, shard: Option<u8>) -> Sequence {
        let Some(shard) = shard else { return Sequence::of(record) };
        let found = self.shards.get(&(record.name.clone(), shard));
        found.copied().unwrap_or(Sequence::fresh(record))
    }

    /// Lets `record`, or that shard of it, stand at `sequence`; the record is
    /// changed, but not stored.
    pub fn put_sequence(&mut self, record: &mut TypeRecord, shard: Option<u8>, sequence: Sequence) {
        record.next_id = match shard {
            None => sequence.next_id,
            Some(shard) => {
                self.shards.insert((record.name.clone(), shard), sequence);
                let first = (record.name.clone(), 0);
                let last = (record.name.clone(), u8::MAX);
                let all = self.shards.range(first..=last).map(|(_, s)| s.next_id);
                all.max().expect("just inserted")
            }
        };
    }

    /// The place in `ranges` of the one that holds `position`.
    pub fn range_at(&self, name: &TypeName, shard: Option<u8>, position: i64) -> Option<usize> {
        self.ranges.iter().rposition(|(of, entry)| {
            of == name
                && entry.shard == shard
                && (entry.range.start()..entry.range.end()).contains(&position)
        })
    }

    pub fn changed(&mut self, at_ms: i64, subject: Subject) -> i64 {
        let seq = self.changes.len() as i64 + 1;
        self.changes.push(Change { seq, at_ms, subject });
        seq
    }

    pub fn audited_type(
        &mut self,
        audit: Audit<'_>,
        name: &TypeName,
        before: Option<String>,
        after: Option<String>,
    ) {
        let seq = self.changed(audit.at_ms, Subject::Type(name.clone()));
        self.push_audit(seq, audit, name.to_string(), before, after);
    }

    /// A type that took a step of a migration, from `before` to `after`.
    pub fn placed(&mut self, audit: Audit<'_>, before: &TypeRecord, after: &TypeRecord) {
        self.types.insert(after.name.clone(), after.clone());
        let (old, new) = (audit::placement(before), audit::placement(after));
        self.audited_type(audit, &after.name, Some(old), Some(new));
    }

    pub fn audited_instance(
        &mut self,
        audit: Audit<'_>,
        name: &str,
        before: Option<String>,
        after: Option<String>,
    ) {
        let seq = self.changed(audit.at_ms, Subject::Instances);
        self.push_audit(seq, audit, name.to_owned(), before, after);
    }

    pub fn audited_access(
        &mut self,
        audit: Audit<'_>,
        subject: &str,
        before: Option<String>,
        after: Option<String>,
    ) {
        let seq = self.changed(audit.at_ms, Subject::Access);
        self.push_audit(seq, audit, subject.to_owned(), before, after);
    }

    fn push_audit(
        &mut self,
        seq: i64,
        audit: Audit<'_>,
        subject: String,
        before: Option<String>,
        after: Option<String>,
    ) {
        let Audit { action, actor, at_ms } = audit;
        let (actor, action) = (actor.to_owned(), action.to_owned());
        self.audit.push(AuditEntry { seq, at_ms, actor, action, subject, before, after });
    }

    /// The instance called `wanted`, by name or number.
    pub fn instance(&self, wanted: &str) -> Result<InstanceRecord, StoreError> {
        let all: Vec<_> = self.instances.values().cloned().collect();
        find_instance(&all, wanted).cloned().map_err(StoreError::Refused)
    }

    pub fn knows_history(&self, name: &TypeName, history: &History) -> bool {
        self.histories.iter().any(|(of, known, _)| of == name && known == history)
    }

    /// What decides about an assignment of the type called `name` to `instance`.
    pub fn known(
        &self,
        name: &TypeName,
        instance: InstanceId,
        history: Option<&History>,
        rest_end: Option<i64>,
    ) -> Known<'_> {
        let mut there = self.histories.iter().filter(|(of, _, on)| of == name && *on == instance);
        let is_above = |(of, entry): &(TypeName, RangeLogEntry)| {
            of == name
                && entry.instance.is_some()
                && rest_end.is_some_and(|end| entry.range.start() >= end)
        };
        Known {
            last_history: there.next_back().map(|(_, history, _)| history),
            is_known: history.is_some_and(|history| self.knows_history(name, history)),
            allocated_above: self.ranges.iter().any(is_above),
        }
    }
}
