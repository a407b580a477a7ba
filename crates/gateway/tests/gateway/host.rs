//! A gateway in a runtime of its own, so that it can be killed, and a small HTTP client.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use nacre_gateway::{
    Gateway, GatewayConfig, RawGatewayConfig, RestartPolicy, RolesConfig, RunningGateway,
    SOCKET_FILE,
};
use nacre_sandbox::fake::FakeDriver;
use nacre_wire::client::Client;
use nacre_wire::control::{CreateSandbox, SandboxInfo, SandboxList, Shutdown};
use nacre_wire::roles::{DevMade, RolesStatus, SwapRefused, SwapRequest, Swapped};
use tokio::runtime::Runtime;

use crate::world::world;

/// One data directory, one world, one gateway at a time.
pub(crate) struct Host {
    pub(crate) world: FakeDriver,
    pub(crate) data: tempfile::TempDir,
    pub(crate) address: SocketAddr,
    pub(crate) config: GatewayConfig,
    running: Option<(Runtime, RunningGateway)>,
}

impl Host {
    pub(crate) async fn start() -> Self {
        Self::start_in(world()).await
    }

    pub(crate) async fn start_in(world: FakeDriver) -> Self {
        Self::make(world, RawGatewayConfig::default(), |_| ()).await
    }

    /// Where no request takes the short way, if not `lean`.
    pub(crate) async fn start_lean(world: FakeDriver, lean: bool) -> Self {
        Self::make(world, RawGatewayConfig::default(), |config| config.lean = lean).await
    }

    /// With settings as a person writes them, and some that only tests change.
    pub(crate) async fn start_as(
        raw: RawGatewayConfig,
        change: impl FnOnce(&mut GatewayConfig),
    ) -> Self {
        Self::make(world(), raw, change).await
    }

    pub(crate) async fn start_in_as(
        world: FakeDriver,
        change: impl FnOnce(&mut GatewayConfig),
    ) -> Self {
        Self::make(world, RawGatewayConfig::default(), change).await
    }

    pub(crate) async fn make(
        world: FakeDriver,
        raw: RawGatewayConfig,
        change: impl FnOnce(&mut GatewayConfig),
    ) -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut config = configure(data.path().to_owned(), raw);
        change(&mut config);
        let address = config.listen;
        let mut host = Self { world, data, address, config, running: None };
        host.start_again().await;
        host
    }

    /// Why a gateway with these settings does not start.
    pub(crate) async fn refuses(raw: RawGatewayConfig) -> String {
        let data = tempfile::tempdir().unwrap();
        let config = configure(data.path().to_owned(), raw);
        match Gateway::start(config, Arc::new(world())).await {
            Ok(_) => panic!("it starts"),
            Err(error) => error.to_string(),
        }
    }

    pub(crate) async fn start_watching(roles: RolesConfig) -> Self {
        let mut host = Self::start().await;
        host.stop(false).await;
        host.config.roles = roles;
        host.start_again().await;
        host
    }

    pub(crate) async fn start_again(&mut self) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let starting = Gateway::start(self.config.clone(), Arc::new(self.world.clone()));
        let gateway = runtime.spawn(starting).await.unwrap().unwrap();
        self.address = gateway.address();
        self.running = Some((runtime, gateway));
    }

    /// As `kill -9` would: whatever was under way is cut off where it was.
    pub(crate) async fn kill(&mut self) {
        let (runtime, gateway) = self.running.take().unwrap();
        tokio::task::spawn_blocking(move || {
            runtime.shutdown_timeout(Duration::from_secs(5));
            drop(gateway);
        })
        .await
        .unwrap();
        self.world.release();
    }

    pub(crate) async fn stop(&mut self, stop_sandboxes: bool) {
        let (runtime, gateway) = self.running.take().unwrap();
        runtime.spawn(gateway.stop(Shutdown { stop_sandboxes })).await.unwrap();
        runtime.shutdown_background();
    }

    pub(crate) fn gateway(&self) -> &RunningGateway {
        &self.running.as_ref().unwrap().1
    }

    pub(crate) fn admin(&self) -> Client {
        Client::unix(self.data.path().join(SOCKET_FILE))
    }

    pub(crate) async fn list(&self) -> Vec<SandboxInfo> {
        self.admin().get_json::<SandboxList>("/admin/sandboxes").await.unwrap().sandboxes
    }

    /// Name and state of each, as one line per sandbox.
    pub(crate) async fn states(&self) -> Vec<String> {
        self.list().await.iter().map(|info| format!("{} {:?}", info.name, info.state)).collect()
    }

    pub(crate) async fn info(&self, name: &str) -> SandboxInfo {
        self.admin().get_json(&format!("/admin/sandboxes/{name}")).await.unwrap()
    }

    pub(crate) async fn create(&self, name: &str) -> SandboxInfo {
        let wanted =
            CreateSandbox { name: Some(name.to_owned()), start: true, ..Default::default() };
        self.admin().post_json("/admin/sandboxes", &wanted).await.unwrap()
    }

    pub(crate) async fn operate(
        &self,
        name: &str,
        op: &str,
    ) -> nacre_wire::client::Result<SandboxInfo> {
        self.admin().post_json(&format!("/admin/sandboxes/{name}/{op}"), &()).await
    }

    /// Waits for a sandbox to look right; there is no event for what only the gateway knows.
    pub(crate) async fn until(
        &self,
        name: &str,
        good: impl Fn(&SandboxInfo) -> bool,
    ) -> SandboxInfo {
        for _ in 0..2000 {
            let info = self.info(name).await;
            if good(&info) {
                return info;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("it never came to that: {:?}", self.info(name).await);
    }

    /// Puts a file where the app of a sandbox is served from.
    pub(crate) async fn put(&self, sandbox: &str, path: &str, content: &str) {
        let id = self.info(sandbox).await.id.parse().unwrap();
        let disk = self.world.disk(&id);
        disk.lock().unwrap().insert(path.to_owned(), content.as_bytes().to_vec());
    }

    /// Puts an app with a page, a script, a style and some wasm into a sandbox. Each says whose it is.
    pub(crate) async fn put_app(&self, sandbox: &str, who: &str) {
        let page = "<!doctype html><link rel=stylesheet href=/app.css>\
                    <script type=module src=/app.js></script>";
        self.put(sandbox, "/", &format!("{page}<p>of {who}")).await;
        self.put(sandbox, "/app.css", &format!("body{{}}/* of {who} */")).await;
        self.put(sandbox, "/app.js", &format!("fetch('/app_bg.wasm')// of {who}")).await;
        self.put(sandbox, "/app_bg.wasm", &format!("\0asm of {who}")).await;
        self.put(sandbox, "/who", who).await;
    }

    pub(crate) async fn make_dev(&self) -> DevMade {
        self.admin().post_json("/admin/sandboxes/dev", &()).await.unwrap()
    }

    /// What `POST swap` answers, whatever it is.
    pub(crate) async fn swap(&self, wanted: SwapRequest) -> Result<Swapped, SwapRefused> {
        let admin = self.admin();
        let body = nacre_wire::client::full(serde_json::to_vec(&wanted).unwrap());
        let path = "/admin/sandboxes/swap";
        let request = admin.request(http::Method::POST, path, body).unwrap();
        let (status, body) = self.raw(request).await;
        match status {
            StatusCode::OK => Ok(serde_json::from_slice(&body).unwrap()),
            StatusCode::CONFLICT => Err(serde_json::from_slice(&body).unwrap()),
            other => panic!("{other}: {}", String::from_utf8_lossy(&body)),
        }
    }

    /// A request over the unix socket, with an error as it is.
    async fn raw(&self, request: Request<nacre_wire::client::Body>) -> (StatusCode, Bytes) {
        let socket = self.data.path().join(SOCKET_FILE);
        let stream = tokio::net::UnixStream::connect(socket).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let answer = Answer::read(sender.send_request(request).await.unwrap()).await;
        (answer.status, answer.body)
    }

    pub(crate) async fn roles(&self) -> RolesStatus {
        self.admin().get_json("/admin/sandboxes/roles").await.unwrap()
    }

    pub(crate) async fn link(&self) -> String {
        self.link_below(&self.origin()).await
    }

    /// What follows the gateway's address in a fresh link.
    pub(crate) async fn link_below(&self, origin: &str) -> String {
        let link: nacre_wire::control::SignInLink =
            self.admin().post_json("/admin/sandboxes/gateway/sign-in-link", &()).await.unwrap();
        link.url.strip_prefix(origin).expect("the link is below the address").to_owned()
    }

    /// The cookie of a fresh session.
    pub(crate) async fn sign_in(&self) -> String {
        let answer = self.get(&self.link().await, &[]).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER);
        let cookie = answer.headers["set-cookie"].to_str().unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    /// How many requests to the live sandbox took the short way.
    pub(crate) async fn lean(&self) -> u64 {
        let request = Request::get("/admin/sandboxes/metrics").header("host", "nacre");
        let request = request.body(nacre_wire::client::full(Bytes::new())).unwrap();
        let (_, page) = self.raw(request).await;
        let line = r#"nacre_requests_lean_total{role="live"} "#;
        let page = String::from_utf8(page.to_vec()).unwrap();
        page.lines().find_map(|it| it.strip_prefix(line)).unwrap().parse().unwrap()
    }

    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.request("GET", path, headers).await
    }

    pub(crate) async fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Answer {
        Answer::read(self.send(self.build(method, path, headers, Body::empty())).await).await
    }

    /// `Host` is right unless `headers` says otherwise.
    pub(crate) fn build(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Body,
    ) -> Request<Body> {
        let mut builder = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            builder = builder.header("host", self.address.to_string());
        }
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        builder.body(body).unwrap()
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Response<Incoming> {
        let stream = tokio::net::TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection.with_upgrades());
        sender.send_request(request).await.unwrap()
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }
}

pub(crate) async fn start_gateway(
    data: std::path::PathBuf,
    world: FakeDriver,
) -> Result<RunningGateway, nacre_gateway::StartError> {
    Gateway::start(configure(data, RawGatewayConfig::default()), Arc::new(world)).await
}

fn configure(data: std::path::PathBuf, mut raw: RawGatewayConfig) -> GatewayConfig {
    raw.listen = Some("127.0.0.1:0".to_owned());
    let mut config = raw.resolve(data).unwrap();
    config.restart = RestartPolicy {
        first_wait: Duration::from_millis(1),
        longest_wait: Duration::from_millis(4),
        attempts: 3,
        steady_after: Duration::from_secs(600),
    };
    config
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) async fn read(response: Response<Incoming>) -> Self {
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Self { status: parts.status, headers: parts.headers, body }
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// A runtime cannot be dropped inside another, and a test has nothing to wait for at its end.
impl Drop for Host {
    fn drop(&mut self) {
        if let Some((runtime, gateway)) = self.running.take() {
            drop(gateway);
            runtime.shutdown_background();
        }
    }
}
