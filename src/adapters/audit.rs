//! What the audit log says of a change, as JSON: the same members as the stored
//! procedures write. Never a key, never a password.

use serde_json::{Value, json};

use crate::domain::access::{Account, Credential, CredentialKind, check_name};
use crate::domain::allocation::Rotation;
use crate::domain::{IdRange, InstanceRecord, TypeRecord};

/// The settings of a type, with its options as an object.
pub(super) fn settings(record: &TypeRecord) -> String {
    settings_value(record).to_string()
}

/// The settings of an opaque type whose new key begins where `rotation` says.
pub(super) fn rotated(record: &TypeRecord, rotation: Rotation) -> String {
    let mut value = settings_value(record);
    value["next_id"] = rotation.next_id.into();
    value["from_slice"] = rotation.from_slice.into();
    value.to_string()
}

/// A reserved block.
pub(super) fn block(range: IdRange) -> String {
    json!({ "start_id": range.start(), "end_id": range.end() }).to_string()
}

/// Where a type is on its way between Redis instances.
pub(super) fn placement(record: &TypeRecord) -> String {
    let placement = &record.placement;
    json!({
        "instance": record.instance.0,
        "moving_to": placement.moving_to.map(|id| id.0),
        "generation": placement.generation,
        "version": record.version,
    })
    .to_string()
}

/// Where the types of an instance go.
pub(super) fn drain(record: &InstanceRecord) -> String {
    json!({ "drain_to": record.drain_to.map(|id| id.0) }).to_string()
}

/// An account; `password` says that it got a new one.
pub(super) fn account(account: &Account, password: bool) -> String {
    let mut value = json!({
        "role": account.role.as_str(),
        "disabled": account.disabled,
        "version": account.version,
    });
    if password {
        value["password"] = "changed".into();
    }
    value.to_string()
}

/// A session or a token.
pub(super) fn credential(credential: &Credential) -> String {
    match credential.kind {
        CredentialKind::Token => json!({
            "id": credential.id,
            "account": credential.account,
            "role": credential.role.as_str(),
            "types": credential.types,
            "quota": credential.quota,
            "certificate": i64::from(credential.certificate),
            "expires_ms": credential.expires_ms,
        }),
        CredentialKind::Session | CredentialKind::Setup => json!({
            "id": credential.id,
            "address": credential.address,
        }),
    }
    .to_string()
}

/// Why a call was refused.
pub(super) fn reason(text: &str) -> String {
    json!({ "reason": text }).to_string()
}

/// The name in the entry of a failed login or a refused call: what nobody can be called is `?`.
pub(super) fn failed_name(name: &str) -> &str {
    if check_name(name).is_ok() { name } else { "?" }
}

/// What is done to a credential that ends, and to which subject.
pub(super) fn ended(credential: &Credential) -> (&'static str, &str) {
    match credential.kind {
        CredentialKind::Token => ("revoke_token", &credential.name),
        _ => ("end_session", credential.account.as_deref().unwrap_or("?")),
    }
}

fn settings_value(record: &TypeRecord) -> Value {
    json!({
        "state": record.state,
        "mode": record.mode,
        "options": record.options,
        "prefix": record.prefix,
        "description": record.description,
        "first_id": record.first_id,
        "max_id": record.max_id,
        "min_range": record.min_range,
        "max_range": record.max_range,
        "load_interval_ms": record.load_interval_ms,
        "load_percentage": record.load_percentage.as_fraction(),
        "lock_ttl_ms": record.lock_ttl_ms,
        "instance": record.instance.0,
        "version": record.version,
    })
}
