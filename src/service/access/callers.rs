//! Programs that take ids: who calls, which types it may use, how many ids it may take,
//! and how many it took.
//!
//! ```text
//! authenticate   a secret or a certificate → who it is, for the connection to keep
//! admit          a call: does that still hold? is the type allowed? is quota left?
//! settle         counts what was given, and gives back what was not
//! ```
//!
//! What was looked up counts for a second. A call that finds it older than half of that
//! has it looked up again beside itself; so only the first call after a pause waits, and
//! half a second at most: a store that needs longer is away, and what is known counts
//! on. What this node revokes ends at once. A call that is let pass takes no lock and
//! allocates nothing.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prometheus::{IntCounter, IntCounterVec, Opts, Registry};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::cache::FRESH;
use super::quota::{Quota, Short};
use super::{AccessControl, Caller, Looked, Notes, TOKEN_PREFIX, hash};
use crate::domain::access::{Credential, CredentialKind, MAX_TOKENS, Role, SecretHash, in_scope};
use crate::domain::{Error, ErrorCode};

/// How long a call waits for a look-up before it goes on with what is known.
const PATIENCE: Duration = Duration::from_millis(500);
/// Most callers that have metrics of their own; what further ones take counts together.
const MAX_LABELS: usize = 1_000;
/// The label of callers without metrics of their own, which no token can be called.
const OTHERS: &str = "(other)";
/// The label of calls that were refused because nobody knows who called.
const NOBODY: &str = "(none)";
/// The longest text that can be a token.
const MAX_SECRET: usize = 128;
/// How often the log of the node tells that a caller is over its quota.
const QUOTA_NOTE: Duration = Duration::from_secs(60);

/// Why a call is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It needs a token, and there is none.
    NoToken,
    /// The token is not known, or not any more.
    BadToken,
    /// The role of the token does not include this.
    Role,
    /// The token is not for this type.
    Type,
    /// The quota is used up, or never gives so many ids at once.
    Quota,
}

impl Refusal {
    const ALL: [Refusal; 5] =
        [Refusal::NoToken, Refusal::BadToken, Refusal::Role, Refusal::Type, Refusal::Quota];

    fn as_str(self) -> &'static str {
        match self {
            Refusal::NoToken => "no_token",
            Refusal::BadToken => "bad_token",
            Refusal::Role => "role",
            Refusal::Type => "type",
            Refusal::Quota => "quota",
        }
    }
}

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// So many ids.
    Ids(i64),
    /// What an id or a type tells.
    Look,
    /// A new type.
    Create,
}

/// A call before it is carried out.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The type.
    pub name: &'a str,
    /// What for.
    pub want: Want,
    /// When, about.
    pub now: Instant,
    /// Where it came from, for the audit log.
    pub from: IpAddr,
}

/// A program that showed a token or a certificate. There is one for each token, which
/// its connections share.
#[derive(Debug)]
pub struct KnownCaller {
    secret: SecretHash,
    id: String,
    name: String,
    types: Vec<String>,
    quota: Option<Quota>,
    /// Whether the token lets in, as far as is known.
    live: AtomicBool,
    /// What it may do: the place in [`Role::ALL`].
    role: AtomicU8,
    /// Until when that counts, and when to look again, in nanoseconds as
    /// [`Callers::nanos`].
    until: AtomicU64,
    renew_at: AtomicU64,
    /// When the token ends by itself, likewise; `u64::MAX` for never.
    ends: AtomicU64,
    /// What the node has revoked up to then.
    generation: AtomicU64,
    /// Held by whoever looks it up.
    renewing: tokio::sync::Mutex<()>,
    counts: Counts,
    quota_noted: AtomicU64,
}

#[derive(Clone, Debug)]
struct Counts {
    label: String,
    ids: IntCounter,
    calls: IntCounter,
    refused: [IntCounter; Refusal::ALL.len()],
}

impl KnownCaller {
    /// The name of its token.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The public id of its token.
    pub fn id(&self) -> &str {
        &self.id
    }

    fn role(&self) -> Role {
        Role::ALL[usize::from(self.role.load(Ordering::Relaxed)) % Role::ALL.len()]
    }

    /// Whether its token lets in, as far as is known.
    pub fn is_live(&self) -> bool {
        self.live.load(Ordering::Relaxed)
    }

    /// Whether what is known counts at `now`.
    fn counts_at(&self, now: u64, generation: u64) -> bool {
        now < self.until.load(Ordering::Acquire)
            && self.generation.load(Ordering::Relaxed) == generation
    }
}

/// What a caller took so far on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerUse {
    /// The name of its token.
    pub name: String,
    /// The public id of its token.
    pub id: String,
    /// See [`Credential::quota`].
    pub quota: Option<i64>,
    /// Ids that it was given.
    pub ids: u64,
    /// Calls that were let pass.
    pub calls: u64,
    /// Calls that were refused, and why.
    pub refused: Vec<(&'static str, u64)>,
}

/// A call that may be carried out. Must be [settled](Self::settle).
#[must_use]
#[derive(Debug)]
pub struct Pass<'c> {
    caller: Option<&'c KnownCaller>,
    taken: u64,
}

impl Pass<'_> {
    /// Nobody counts it.
    pub const FREE: Pass<'static> = Pass { caller: None, taken: 0 };

    /// The call gave so many ids; 0 if it failed.
    pub fn settle(self, given: u64) {
        let Some(caller) = self.caller else { return };
        caller.counts.calls.inc();
        caller.counts.ids.inc_by(given);
        if let Some(quota) = caller.quota.as_ref().filter(|_| given < self.taken) {
            quota.give_back(self.taken - given);
        }
    }
}

/// The part of [`AccessControl`] that knows them.
pub(super) struct Callers {
    /// Whether a call without a token is refused.
    pub(super) required: AtomicBool,
    base: Instant,
    known: Mutex<Known>,
    notes: Mutex<Notes>,
    /// Look-ups and notes that run beside calls; they end with the owner.
    tasks: Mutex<JoinSet<()>>,
    ids: IntCounterVec,
    calls: IntCounterVec,
    refused: IntCounterVec,
    nobody: [IntCounter; Refusal::ALL.len()],
}

#[derive(Default)]
struct Known {
    /// By the ids of their tokens.
    callers: HashMap<String, Arc<KnownCaller>>,
    labels: HashSet<String>,
}

impl Callers {
    pub(super) fn new() -> Self {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            IntCounterVec::new(Opts::new(name, help), labels).expect("the names are legal")
        };
        let refused = counter(
            "idgen_caller_refusals_total",
            "Calls that were refused to callers, by their tokens and by reason",
            &["caller", "reason"],
        );
        Callers {
            required: AtomicBool::new(false),
            base: Instant::now(),
            known: Mutex::default(),
            notes: Mutex::new(Notes::new()),
            tasks: Mutex::default(),
            ids: counter(
                "idgen_caller_ids_total",
                "Ids given to callers with a token",
                &["caller"],
            ),
            calls: counter(
                "idgen_caller_calls_total",
                "Calls of callers with a token that were let pass",
                &["caller"],
            ),
            nobody: Refusal::ALL
                .map(|reason| refused.with_label_values(&[NOBODY, reason.as_str()])),
            refused,
        }
    }

    fn nanos(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.base).as_nanos() as u64
    }

    /// The one with this token, as the store knows it.
    fn of(&self, secret: &SecretHash, credential: &Credential) -> Arc<KnownCaller> {
        let mut known = self.known.lock().expect("no one panics while holding it");
        if let Some(caller) = known.callers.get(&credential.id) {
            return caller.clone();
        }
        // An ended token may have had the name before; and those that nobody uses need
        // not be remembered: their quotas are full.
        known.callers.retain(|_, caller| caller.name != credential.name);
        if known.callers.len() >= 2 * MAX_TOKENS {
            let now = self.nanos(Instant::now());
            known.callers.retain(|_, caller| {
                Arc::strong_count(caller) > 1 || now < caller.until.load(Ordering::Relaxed)
            });
        }
        let has_room = known.labels.len() < MAX_LABELS;
        let label = match known.labels.contains(&credential.name) || has_room {
            true => credential.name.as_str(),
            false => OTHERS,
        };
        known.labels.insert(label.to_owned());
        let caller = Arc::new(KnownCaller {
            secret: secret.clone(),
            id: credential.id.clone(),
            name: credential.name.clone(),
            types: credential.types.clone(),
            quota: credential.quota.map(|rate| Quota::new(rate.unsigned_abs().max(1))),
            live: AtomicBool::new(false),
            role: AtomicU8::new(0),
            until: AtomicU64::new(0),
            renew_at: AtomicU64::new(0),
            ends: AtomicU64::new(u64::MAX),
            generation: AtomicU64::new(0),
            renewing: tokio::sync::Mutex::default(),
            counts: Counts {
                label: label.to_owned(),
                ids: self.ids.with_label_values(&[label]),
                calls: self.calls.with_label_values(&[label]),
                refused: Refusal::ALL
                    .map(|reason| self.refused.with_label_values(&[label, reason.as_str()])),
            },
            quota_noted: AtomicU64::new(0),
        });
        known.callers.insert(caller.id.clone(), caller.clone());
        caller
    }

    /// Notes what a look-up said.
    fn note(&self, caller: &KnownCaller, looked: &Looked, generation: u64) {
        let asked = self.nanos(looked.asked);
        let ends = looked.ends.map_or(u64::MAX, |at| self.nanos(at));
        match &looked.caller {
            Some(known) => {
                let role = Role::ALL.iter().position(|role| *role == known.role);
                caller.role.store(role.unwrap_or_default() as u8, Ordering::Relaxed);
                caller.ends.store(ends, Ordering::Relaxed);
                caller.live.store(true, Ordering::Relaxed);
            }
            None => caller.live.store(false, Ordering::Relaxed),
        }
        caller.generation.store(generation, Ordering::Relaxed);
        let fresh = FRESH.as_nanos() as u64;
        // What lets in does so until it ends; what does not need not be asked all the time.
        let until = (asked + fresh).min(if looked.caller.is_some() { ends } else { u64::MAX });
        caller.renew_at.store(asked + fresh / 2, Ordering::Relaxed);
        caller.until.store(until, Ordering::Release);
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().expect("no one panics while holding it");
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }
}

impl AccessControl {
    /// When it was made.
    #[cfg(test)]
    pub(super) fn base(&self) -> Instant {
        self.callers.base
    }

    /// Whether calls for ids need a token; without, those of nobody pass.
    pub fn require_tokens(self, required: bool) -> Self {
        self.set_tokens_required(required);
        self
    }

    /// The same while calls are made.
    pub fn set_tokens_required(&self, required: bool) {
        self.callers.required.store(required, Ordering::Relaxed);
    }

    /// Whether calls of nobody are refused.
    pub fn tokens_are_required(&self) -> bool {
        self.callers.required.load(Ordering::Relaxed)
    }

    /// Adds the metrics of callers to `registry`. Fails if they are there already.
    pub fn register(&self, registry: &Registry) -> prometheus::Result<()> {
        let callers = &self.callers;
        registry.register(Box::new(callers.ids.clone()))?;
        registry.register(Box::new(callers.calls.clone()))?;
        registry.register(Box::new(callers.refused.clone()))
    }

    /// What callers took on this node since it started, by name. Who made no call about
    /// ids is not among them, nor who was forgotten for others.
    pub fn callers(&self) -> Vec<CallerUse> {
        let known = self.callers.known.lock().expect("no one panics while holding it");
        let of = |caller: &Arc<KnownCaller>| CallerUse {
            name: caller.counts.label.clone(),
            id: caller.id.clone(),
            quota: caller.quota.as_ref().map(|quota| quota.rate() as i64),
            ids: caller.counts.ids.get(),
            calls: caller.counts.calls.get(),
            refused: Refusal::ALL
                .iter()
                .zip(&caller.counts.refused)
                .map(|(reason, count)| (reason.as_str(), count.get()))
                .collect(),
        };
        let mut all: Vec<_> = known.callers.values().map(of).collect();
        all.retain(|of| of.calls > 0 || of.refused.iter().any(|(_, count)| *count > 0));
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all.dedup_by(|a, b| a.name == b.name);
        all
    }

    /// Who calls with the API token `secret`. `PERMISSION_DENIED` for one that lets
    /// nobody in, `UNAVAILABLE` where it is not known here and the store is away.
    pub async fn authenticate(
        self: &Arc<Self>,
        secret: &str,
        from: IpAddr,
    ) -> Result<Arc<KnownCaller>, Error> {
        let is_token = secret.starts_with(TOKEN_PREFIX) && secret.len() <= MAX_SECRET;
        let found = match is_token {
            true => self.caller_with(&hash(secret), false).await?,
            false => None,
        };
        found.map(|(_, caller)| caller).ok_or_else(|| {
            let message = "this API token is not valid: it never was, was revoked, has expired, \
                           or its account is closed";
            self.refuse(None, Refusal::BadToken, from, message.to_owned())
        })
    }

    /// Who has the API token `secret`, and whom its calls count for; `None` if it lets
    /// nobody in.
    pub async fn who_calls(
        &self,
        secret: &str,
    ) -> Result<Option<(Caller, Arc<KnownCaller>)>, Error> {
        self.caller_with(&hash(secret), false).await
    }

    /// Who calls with a certificate for `name`, which the connection has checked: the
    /// live token that was made for certificates of this name, and no other token that
    /// is called so. `None` if there is none.
    pub async fn caller_by_certificate(
        &self,
        name: &str,
    ) -> Result<Option<Arc<KnownCaller>>, Error> {
        let found = self.caller_with(&certificate(name), true).await?;
        Ok(found.map(|(_, caller)| caller))
    }

    async fn caller_with(
        &self,
        secret: &SecretHash,
        certificate: bool,
    ) -> Result<Option<(Caller, Arc<KnownCaller>)>, Error> {
        let generation = self.cache.generation();
        let looked = self.look_up(secret, FRESH).await?;
        let Some(known) = looked.caller.clone().filter(|known| {
            let credential = &known.credential;
            credential.kind == CredentialKind::Token && credential.certificate == certificate
        }) else {
            return Ok(None);
        };
        let caller = self.callers.of(secret, &known.credential);
        self.callers.note(&caller, &looked, generation);
        Ok(Some((known, caller)))
    }

    /// Lets a call of `caller`, or of nobody, pass. Refused: `PERMISSION_DENIED`;
    /// `QUOTA_EXCEEDED`; `INVALID_ARGUMENT` (`count`) for more than the quota ever gives
    /// at once; `UNAVAILABLE` where nothing is known and the store is away.
    pub async fn admit<'c>(
        self: &Arc<Self>,
        caller: Option<&'c Arc<KnownCaller>>,
        call: Call<'_>,
    ) -> Result<Pass<'c>, Error> {
        let Some(caller) = caller else {
            if !self.tokens_are_required() {
                return Ok(Pass::FREE);
            }
            let message = "this node serves callers with an API token only: call authenticate \
                           first, or give the token as caller of the original methods";
            return Err(self.refuse(None, Refusal::NoToken, call.from, message.to_owned()));
        };
        let now = self.callers.nanos(call.now);
        if !caller.counts_at(now, self.cache.generation()) {
            // Boxed: rare and large, it would make every call larger.
            Box::pin(self.renew(caller)).await?;
        } else if now >= caller.renew_at.load(Ordering::Relaxed) {
            self.renew_beside(caller);
        }
        self.check(caller, call)?;
        let Want::Ids(count) = call.want else {
            return Ok(Pass { caller: Some(caller), taken: 0 });
        };
        let taken = count.unsigned_abs();
        if let Some(quota) = &caller.quota {
            quota.take(taken, now).map_err(|short| self.over_quota(caller, quota, short, call))?;
        }
        Ok(Pass { caller: Some(caller), taken })
    }

    /// What does not depend on how many ids there are.
    fn check(self: &Arc<Self>, caller: &Arc<KnownCaller>, call: Call<'_>) -> Result<(), Error> {
        let name = &caller.name;
        if !caller.live.load(Ordering::Relaxed) {
            let ends = caller.ends.load(Ordering::Relaxed);
            let why = match self.callers.nanos(Instant::now()) >= ends {
                true => "has expired",
                false => "was revoked, or its account was closed or may do less now",
            };
            let message = format!("token {name} is not valid any more: it {why}");
            return Err(self.refuse(Some(caller), Refusal::BadToken, call.from, message));
        }
        let needed = match call.want {
            Want::Ids(_) => Some(Role::Issue),
            // Whoever is let in for the type.
            Want::Look => None,
            Want::Create => Some(Role::Operate),
        };
        if let Some(needed) = needed.filter(|needed| !caller.role().includes(*needed)) {
            let role = caller.role();
            let message = format!("token {name} has the role {role}; this needs the role {needed}");
            return Err(self.refuse(Some(caller), Refusal::Role, call.from, message));
        }
        if !in_scope(&caller.types, call.name) {
            let shown: String = call.name.chars().take(128).collect();
            let message = format!("token {name} is not for the id type {shown:?}");
            return Err(self.refuse(Some(caller), Refusal::Type, call.from, message));
        }
        Ok(())
    }

    fn over_quota(
        &self,
        caller: &KnownCaller,
        quota: &Quota,
        short: Short,
        call: Call<'_>,
    ) -> Error {
        caller.counts.refused[Refusal::Quota as usize].inc();
        let (name, rate) = (&caller.name, quota.rate());
        let now = self.callers.nanos(call.now);
        let noted = caller.quota_noted.load(Ordering::Relaxed);
        if now >= noted
            && caller
                .quota_noted
                .compare_exchange(
                    noted,
                    now + QUOTA_NOTE.as_nanos() as u64,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                )
                .is_ok()
        {
            tracing::warn!(caller = %name, quota = rate, "a caller is over its quota");
        }
        match short {
            Short::Never => Error::invalid(
                "count",
                format!(
                    "count is more than the quota of token {name} gives at once: {rate} ids per \
                     second and as many at once; ask for fewer"
                ),
            ),
            Short::In(wait) => {
                let wait_ms = wait.as_micros().div_ceil(1_000).max(1);
                Error::new(
                    ErrorCode::QuotaExceeded,
                    format!(
                        "token {name} has used up its quota of {rate} ids per second on this \
                         node: try again in {wait_ms} ms"
                    ),
                )
            }
        }
    }

    /// Looks `caller` up again, and waits for that.
    async fn renew(&self, caller: &KnownCaller) -> Result<(), Error> {
        let _turn = caller.renewing.lock().await;
        let generation = self.cache.generation();
        if caller.counts_at(self.callers.nanos(Instant::now()), generation) {
            // Somebody else did meanwhile.
            return Ok(());
        }
        self.renew_now(caller, generation).await
    }

    async fn renew_now(&self, caller: &KnownCaller, generation: u64) -> Result<(), Error> {
        let looked = match timeout(PATIENCE, self.look_up(&caller.secret, FRESH / 2)).await {
            Ok(looked) => looked?,
            Err(_) => self.keep_up(&caller.secret)?,
        };
        self.callers.note(caller, &looked, generation);
        Ok(())
    }

    /// Has `caller` looked up beside the call that comes just now.
    fn renew_beside(self: &Arc<Self>, caller: &Arc<KnownCaller>) {
        // Only once: it is set anew when the answer is there, and otherwise when the call
        // after the last moment that counts asks by itself.
        if caller.renew_at.swap(u64::MAX, Ordering::Relaxed) == u64::MAX {
            return;
        }
        let (access, caller) = (self.clone(), caller.clone());
        self.callers.spawn(async move {
            let Ok(_turn) = caller.renewing.try_lock() else { return };
            let generation = access.cache.generation();
            if let Err(error) = access.renew_now(&caller, generation).await {
                tracing::debug!(%error, "access: a caller could not be looked up");
            }
        });
    }

    /// Counts a refusal, and notes it, unless there were too many lately.
    pub fn refuse(
        self: &Arc<Self>,
        caller: Option<&Arc<KnownCaller>>,
        reason: Refusal,
        from: IpAddr,
        message: String,
    ) -> Error {
        let counts = caller.map_or(&self.callers.nobody, |caller| &caller.counts.refused);
        counts[reason as usize].inc();
        let may = {
            let mut notes = self.callers.notes.lock().expect("no one panics while holding it");
            notes.may(Instant::now())
        };
        if may {
            let name = caller.map_or("?", |caller| caller.name.as_str()).to_owned();
            let (address, reason) = (from.to_canonical().to_string(), reason.as_str());
            tracing::warn!(caller = %name, %address, reason, "a call was refused");
            let access = self.clone();
            self.callers.spawn(async move {
                let noted = access.accounts.note_refused_call(&name, &address, reason).await;
                if let Err(error) = noted {
                    tracing::warn!(%error, "a refused call is not in the audit log");
                }
            });
        }
        Error::new(ErrorCode::PermissionDenied, message)
    }
}

/// What stands for the secret of certificates for `name`. It begins as no token does, so
/// nobody can show it; and whoever looks for a token does not take a certificate.
pub(super) fn certificate(name: &str) -> SecretHash {
    hash(&format!("certificate {name}"))
}
