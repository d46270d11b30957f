//! Who is the master now? Asked of several witnesses at once.
//!
//! A witness that was cut off may still name the old master, and be the first
//! to answer. So more than half of them are heard, and the newest word counts:
//! whoever makes a master (Sentinels, masters of a cluster) needs a majority, and
//! numbers its decisions upwards. Where fewer answer within the time limit, the
//! newest of these has to do: for order, the range store is asked as well.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use redis::{ErrorKind, RedisError, RedisResult};
use tokio::time::timeout;

/// The answer with the highest number, see the module. Fails when nobody
/// answers within `limit`, with the last reason.
pub(super) async fn newest<N: Ord, T>(
    questions: impl IntoIterator<Item = impl Future<Output = RedisResult<(N, T)>>>,
    limit: Duration,
) -> RedisResult<T> {
    let mut questions: FuturesUnordered<_> = questions.into_iter().collect();
    let enough = questions.len() / 2 + 1;
    let mut heard = 0;
    let mut best: Option<(N, T)> = None;
    let mut why = RedisError::from((ErrorKind::Io, "nobody answers who knows the master"));
    let _ = timeout(limit, async {
        while let Some(answer) = questions.next().await {
            match answer {
                Ok(answer) => {
                    heard += 1;
                    if best.as_ref().is_none_or(|(number, _)| answer.0 > *number) {
                        best = Some(answer);
                    }
                    if heard >= enough {
                        return;
                    }
                }
                Err(error) => why = error,
            }
        }
    })
    .await;
    best.map(|(_, answer)| answer).ok_or(why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use futures_util::future::{pending, ready};

    const LIMIT: Duration = Duration::from_millis(500);

    async fn ask(answers: &[Option<Result<u64, &'static str>>]) -> RedisResult<u64> {
        let question = |answer: &Option<Result<u64, &'static str>>| match *answer {
            None => pending().boxed(),
            Some(Ok(number)) => ready(Ok((number, number))).boxed(),
            Some(Err(why)) => ready(Err(RedisError::from((ErrorKind::Io, why)))).boxed(),
        };
        newest(answers.iter().map(question), LIMIT).await
    }

    #[tokio::test(start_paused = true)]
    async fn the_newest_word_of_more_than_half_counts() {
        let began = tokio::time::Instant::now();
        assert_eq!(ask(&[Some(Ok(1)), Some(Ok(2)), None]).await.unwrap(), 2);
        assert_eq!(ask(&[Some(Ok(3)), Some(Err("x")), Some(Ok(2))]).await.unwrap(), 3);
        assert_eq!(ask(&[Some(Err("x")), Some(Err("x")), Some(Ok(2))]).await.unwrap(), 2);
        assert!(
            ask(&[Some(Err("wrong password"))]).await.unwrap_err().to_string().contains("wrong")
        );
        assert_eq!(began.elapsed(), Duration::ZERO, "nobody is waited for in vain");
        assert_eq!(ask(&[None, Some(Ok(2)), None]).await.unwrap(), 2);
        assert_eq!(began.elapsed(), LIMIT);
        assert!(ask(&[None]).await.is_err());
        assert!(ask(&[]).await.is_err());
    }
}
