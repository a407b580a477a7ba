//! What checking a session costs, for the benchmark: the check itself and nothing around it.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};
use nacre_wire::ApiError;
use nacre_wire::access::SignInMethod;

use super::session;
use crate::auth::{Arrival, Auth, AuthConfig};
use crate::sandboxes::errors;
use crate::store::Store;

/// Cookies that a browser has for this computer besides the session.
const OTHERS: &str =
    "nacre_app_live_theme=dark; nacre_app_live_sid=0123456789abcdef0123456789abcdef";
/// A single check takes less than a clock can tell well.
const AT_ONCE: u32 = 100;

/// The time of one check, measured `rounds` times over a hundred, with as many sessions open as given.
#[doc(hidden)]
pub async fn session_check_times(
    data_dir: &Path,
    sessions: usize,
    rounds: usize,
) -> Result<Vec<Duration>, ApiError> {
    let store = Store::open(&data_dir.join("probe.db")).map_err(errors::from_store)?;
    let failed = |error: &dyn std::fmt::Display| {
        ApiError::new(nacre_wire::ErrorKind::Internal, error.to_string())
    };
    let auth = Auth::start(&AuthConfig::default(), None, store).await.map_err(|e| failed(&e))?;
    let arrival = Arrival { method: SignInMethod::Link, address: None, agent: None };
    let mut headers = HeaderMap::new();
    for _ in 0..sessions {
        let secret =
            auth.sessions.open(arrival.clone(), None).await.map_err(|error| failed(&error))?;
        let line = format!("{OTHERS}; nacre_session={}", secret.reveal());
        headers.insert(COOKIE, HeaderValue::try_from(line).map_err(|error| failed(&error))?);
    }
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let began = Instant::now();
        for _ in 0..AT_ONCE {
            if session(&auth, black_box(&headers), false).is_none() {
                return Err(failed(&"the session is not good"));
            }
        }
        times.push(began.elapsed() / AT_ONCE);
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_session_is_checked_as_often_as_asked() {
        let dir = tempfile::tempdir().unwrap();
        let times = session_check_times(dir.path(), 3, 5).await.unwrap();
        assert_eq!(times.len(), 5);
        assert!(session_check_times(dir.path(), 0, 1).await.is_err(), "nobody is signed in");
    }
}
