//! One call: who it acts as, what it asks, and the thread hop that does the work.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, Request};
use http::HeaderMap;
use nacre_wire::path::from_query;
use nacre_wire::{ApiError, ErrorKind};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use super::Context;
use super::fault::bad_request;
use super::identity::act_as;
use super::root::Root;
use crate::failure::Failure;
use crate::users::{self, User};

/// Requests whose body is JSON name a few paths, each below 4 KiB.
const JSON_LIMIT: usize = 256 * 1024;
/// Each archive being unpacked holds a thread until its client has sent it all.
const UNPACKING_AT_ONCE: usize = 32;

/// What all calls share.
#[derive(Debug)]
pub(crate) struct Files {
    root: Result<Root, ApiError>,
    default_user: Arc<User>,
    /// Held while a new version takes the place of an old one, so that of two writers with the
    /// same precondition exactly one wins.
    publishing: Mutex<()>,
    pub unpacking: Arc<Semaphore>,
}

impl Files {
    pub(crate) fn new(context: Context) -> Self {
        Self {
            root: Root::open(&context.root, &context.workspace),
            default_user: Arc::new(context.default_user),
            publishing: Mutex::new(()),
            unpacking: Arc::new(Semaphore::new(UNPACKING_AT_ONCE)),
        }
    }

    pub(crate) fn root(&self) -> Result<&Root, ApiError> {
        self.root.as_ref().map_err(Clone::clone)
    }

    pub(crate) fn publishing(&self) -> MutexGuard<'_, ()> {
        self.publishing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call's identity. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub files: Arc<Files>,
    pub user: Arc<User>,
}

impl Session {
    async fn start(files: Arc<Files>, query: &Query) -> Result<Self, ApiError> {
        let user = match query.text("user")? {
            None => files.default_user.clone(),
            Some(name) if name == files.default_user.name => files.default_user.clone(),
            Some(name) => Arc::new(hop(move || users::lookup(&name)).await?),
        };
        Ok(Self { files, user })
    }

    pub(crate) fn of_default_user(files: Arc<Files>) -> Self {
        Self { user: files.default_user.clone(), files }
    }

    /// Runs `work` on a thread that acts as the user. It finishes even if the client goes away.
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T, ApiError>
    where
        T: Send + 'static,
        F: FnOnce(&Root) -> Result<T, ApiError> + Send + 'static,
    {
        let session = self.clone();
        hop(move || {
            let _acting = act_as(&session.user)?;
            work(session.files.root()?)
        })
        .await
    }
}

/// Runs blocking work on a thread that may wait.
pub(crate) async fn hop<T, F>(work: F) -> Result<T, ApiError>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, ApiError> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(ApiError::new(ErrorKind::Unavailable, "the supervisor is stopping")),
    }
}

/// The raw query: values are bytes until somebody asks for text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(raw: &str) -> Self {
        let pairs = raw.split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
        )
    }

    fn raw(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    pub(crate) fn path(&self, key: &str) -> Option<PathBuf> {
        self.raw(key).map(from_query)
    }

    pub(crate) fn required_path(&self) -> Result<PathBuf, ApiError> {
        self.path("path").ok_or_else(|| bad_request("the query has no \"path\""))
    }

    pub(crate) fn text(&self, key: &str) -> Result<Option<String>, ApiError> {
        self.path(key)
            .map(|value| value.into_os_string().into_string())
            .transpose()
            .map_err(|_| bad_request(format!("\"{key}\" in the query is not UTF-8")))
    }

    pub(crate) fn flag(&self, key: &str) -> Result<bool, ApiError> {
        match self.text(key)?.as_deref() {
            None | Some("false" | "0") => Ok(false),
            Some("" | "true" | "1") => Ok(true),
            Some(other) => Err(bad_request(format!("\"{key}={other}\" is not true or false"))),
        }
    }

    pub(crate) fn number(&self, key: &str, radix: u32) -> Result<Option<u64>, ApiError> {
        self.text(key)?
            .map(|text| {
                u64::from_str_radix(&text, radix)
                    .map_err(|_| bad_request(format!("\"{key}={text}\" is not a number")))
            })
            .transpose()
    }

    pub(crate) fn mode(&self) -> Result<Option<u32>, ApiError> {
        self.number("mode", 8)?.map(|mode| checked_mode(mode as u32)).transpose()
    }
}

pub(crate) fn checked_mode(mode: u32) -> Result<u32, ApiError> {
    if mode > 0o7777 {
        return Err(bad_request(format!("{mode:o} is not a file mode")));
    }
    Ok(mode)
}

/// A request, taken apart.
#[derive(Debug)]
pub(crate) struct Call {
    pub session: Session,
    pub query: Query,
    pub method: http::Method,
    pub headers: HeaderMap,
    pub body: Body,
}

impl FromRequest<Arc<Files>> for Call {
    type Rejection = Failure;

    async fn from_request(request: Request, files: &Arc<Files>) -> Result<Self, Failure> {
        let (parts, body) = request.into_parts();
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let session = Session::start(files.clone(), &query).await?;
        Ok(Self { session, query, method: parts.method, headers: parts.headers, body })
    }
}

impl Call {
    pub(crate) async fn json<T: DeserializeOwned>(self) -> Result<(Session, T), ApiError> {
        let bytes = to_bytes(self.body, JSON_LIMIT).await.map_err(|error| {
            ApiError::new(ErrorKind::TooLarge, format!("the request could not be read: {error}"))
        })?;
        let request = serde_json::from_slice(&bytes)
            .map_err(|error| bad_request(format!("the request is not understood: {error}")))?;
        Ok((self.session, request))
    }

    pub(crate) fn header(&self, name: http::HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(crate) fn path(&self) -> Result<PathBuf, ApiError> {
        self.absolute(&self.query.required_path()?)
    }

    fn absolute(&self, path: &Path) -> Result<PathBuf, ApiError> {
        self.session.files.root()?.absolute(path)
    }
}
