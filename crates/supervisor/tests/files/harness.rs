//! A supervisor's file door in a temporary directory.

use std::fs;
use std::path::{Path, PathBuf};

use axum::body::Bytes;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use nacre_supervisor::files::{Context, router};
use nacre_supervisor::users::User;
use nacre_wire::client::{Body, Client, Error, empty, full};
use nacre_wire::error::ErrorBody;
use nacre_wire::path::to_query;
use nacre_wire::{ApiError, ErrorKind};
use tempfile::TempDir;
use tokio::net::UnixListener;

pub(crate) const CANARY: &[u8] = b"outside";

/// `root/` is what calls are confined to; `root/workspace` is where relative paths start;
/// `outside/` is what nobody may reach.
pub(crate) struct Computer {
    dir: TempDir,
    pub(crate) client: Client,
    server: tokio::task::JoinHandle<()>,
}

pub(crate) fn user(uid: u32) -> User {
    User {
        name: format!("user{uid}"),
        uid,
        gid: uid,
        groups: Vec::new(),
        home: PathBuf::from("/"),
        shell: PathBuf::from("/bin/sh"),
    }
}

impl Computer {
    pub(crate) async fn start() -> Self {
        Self::acting_as(user(rustix::process::geteuid().as_raw())).await
    }

    pub(crate) async fn acting_as(default_user: User) -> Self {
        let dir = TempDir::new().unwrap();
        for name in ["root/workspace", "outside/dir"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        for name in ["outside/canary", "outside/dir/canary"] {
            fs::write(dir.path().join(name), CANARY).unwrap();
        }
        let context = Context {
            root: dir.path().join("root"),
            workspace: PathBuf::from("/workspace"),
            default_user,
            recorder: nacre_supervisor::history::Recorder::off(),
        };
        let socket = dir.path().join("door");
        let server = serve(router(context), &socket);
        Self { client: Client::unix(socket), server, dir }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.root().join("workspace")
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.dir.path().join("outside")
    }

    pub(crate) fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.workspace().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(crate) fn get(&self, name: &str) -> Vec<u8> {
        fs::read(self.workspace().join(name)).unwrap()
    }

    /// The canaries are what they were, and alone.
    pub(crate) fn assert_outside_untouched(&self) {
        assert_eq!(names(&self.outside()), ["canary", "dir"]);
        assert_eq!(names(&self.outside().join("dir")), ["canary"]);
        for canary in ["canary", "dir/canary"] {
            assert_eq!(fs::read(self.outside().join(canary)).unwrap(), CANARY);
        }
    }

    /// A call by hand, for what the typed client does not say.
    pub(crate) async fn call(&self, call: Call<'_>) -> Answer {
        let query = call.query.iter().fold(String::new(), |query, (key, value)| {
            format!("{query}{key}={}&", to_query(value))
        });
        let uri = format!("/supervisor/files/{}?{query}", call.name);
        let mut request = self.client.request(call.method, &uri, call.body).unwrap();
        for (name, value) in call.headers {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        // Not `Client::send`, which turns a refusal into an error.
        let stream = tokio::net::UnixStream::connect(self.dir.path().join("door")).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let response = sender.send_request(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        Answer { status: parts.status, headers: parts.headers, body }
    }
}

impl Drop for Computer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

pub(crate) fn serve(router: axum::Router, socket: &Path) -> tokio::task::JoinHandle<()> {
    let listener = UnixListener::bind(socket).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = TowerToHyperService::new(router.clone());
            tokio::spawn(async move {
                let _ = hyper::server::conn::http1::Builder::new()
                    .max_buf_size(1 << 20)
                    .serve_connection(TokioIo::new(stream), service)
                    .with_upgrades()
                    .await;
            });
        }
    })
}

pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    pub(crate) name: &'a str,
    pub(crate) query: Vec<(&'a str, &'a Path)>,
    pub(crate) headers: Vec<(&'static str, &'a str)>,
    pub(crate) body: Body,
}

impl<'a> Call<'a> {
    pub(crate) fn new(
        method: Method,
        name: &'a str,
        path: &'a (impl AsRef<Path> + ?Sized),
    ) -> Self {
        let query = vec![("path", path.as_ref())];
        Self { method, name, query, headers: Vec::new(), body: empty() }
    }

    pub(crate) fn query(mut self, key: &'a str, value: &'a str) -> Self {
        self.query.push((key, Path::new(value)));
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: &'a str) -> Self {
        self.headers.push((name, value));
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = full(body);
        self
    }
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn error(&self) -> ApiError {
        serde_json::from_slice::<ErrorBody>(&self.body).unwrap().error
    }
}

pub(crate) fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T, Error>, kind: ErrorKind) -> ApiError {
    match result {
        Err(Error::Api(error)) if error.kind == kind => error,
        other => panic!("expected {kind:?}, got {other:?}"),
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
