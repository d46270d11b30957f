//! Hashes passwords: argon2id, on threads for blocking work, a few at a time.

use std::sync::Arc;

use argon2::Argon2;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use tokio::sync::Semaphore;

use crate::domain::access::PasswordHash;
use crate::domain::{Error, ErrorCode};
use crate::ports::Entropy;

/// How many are hashed at once. Each takes 19 MiB and a core for some 20 ms.
const AT_ONCE: usize = 2;
/// How many more may wait for that.
const WAITING: usize = 30;

/// See the module.
pub(super) struct Hasher {
    running: Arc<Semaphore>,
    room: Semaphore,
    /// Stands for the password of accounts that are not there, so that they cost the
    /// same time as others. Of no password that anybody knows.
    nobody: PasswordHash,
}

impl Hasher {
    pub(super) fn new(entropy: &dyn Entropy) -> Result<Self, Error> {
        Ok(Hasher {
            running: Arc::new(Semaphore::new(AT_ONCE)),
            room: Semaphore::new(AT_ONCE + WAITING),
            nobody: make(&entropy.token(), entropy.random_u128())?,
        })
    }

    /// The hash of `password` with a salt of its own. `OVERLOADED` where too many
    /// wait.
    pub(super) async fn hash(
        &self,
        password: &str,
        entropy: &dyn Entropy,
    ) -> Result<PasswordHash, Error> {
        let (password, salt) = (password.to_owned(), entropy.random_u128());
        self.run(move || make(&password, salt)).await?
    }

    /// Whether `password` is the one of `hash`; never where there is no hash, after
    /// the same time. `OVERLOADED` where too many wait.
    pub(super) async fn verify(
        &self,
        password: &str,
        hash: Option<&PasswordHash>,
    ) -> Result<bool, Error> {
        let known = hash.is_some();
        let (password, hash) = (password.to_owned(), hash.unwrap_or(&self.nobody).clone());
        let verify = move || Argon2::default().verify_password(password.as_bytes(), hash.reveal());
        Ok(self.run(verify).await?.is_ok() && known)
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let _room = self.room.try_acquire().map_err(|_| {
            Error::new(ErrorCode::Overloaded, "too many passwords are being checked")
        })?;
        let turn = self.running.clone().acquire_owned().await.expect("never closed");
        let work = move || {
            // Kept here: a caller that goes away does not stop the work.
            let _turn = turn;
            work()
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| defect())
    }
}

fn make(password: &str, salt: u128) -> Result<PasswordHash, Error> {
    let hash = Argon2::default().hash_password_with_salt(password.as_bytes(), &salt.to_be_bytes());
    hash.map(|hash| PasswordHash::new(hash.to_string())).map_err(|_| defect())
}

fn defect() -> Error {
    Error::new(ErrorCode::Internal, "a password cannot be hashed")
}
