//! The in-process driver keeps the rules that the real ones keep.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use nacre_sandbox::Driver;
use nacre_sandbox::conformance::Subject;
use nacre_sandbox::fake::{FakeDriver, Guest};
use nacre_wire::client::{BoxStream, Client, Dial};

/// A supervisor that knows just enough.
async fn answer(guest: Guest, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let file = request.uri().query().unwrap_or_default().to_owned();
    let body = match (method, path.as_str()) {
        (_, "/supervisor/version") => {
            Some(r#"{"version":"1","protocol":{"oldest":1,"newest":1}}"#.into())
        }
        (_, "/supervisor/host") => {
            let host = Client::new(Arc::new(Up(guest)), "");
            let version: nacre_wire::status::Version =
                host.get_json("/host/version").await.unwrap();
            Some(serde_json::to_vec(&version).unwrap())
        }
        (Method::PUT, _) => {
            let bytes = request.into_body().collect().await.unwrap().to_bytes();
            guest.disk.lock().unwrap().insert(file, bytes.to_vec());
            Some(
                br#"{"path":"a","kind":"file","size":0,"mode":0,"uid":0,"gid":0,"links":1,"modified_ns":0,"etag":""}"#
                    .to_vec(),
            )
        }
        _ => guest.disk.lock().unwrap().get(&file).cloned(),
    };
    let status = if body.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
    Response::builder().status(status).body(Full::new(body.unwrap_or_default().into())).unwrap()
}

struct Up(Guest);

#[async_trait::async_trait]
impl Dial for Up {
    async fn dial(&self) -> std::io::Result<BoxStream> {
        Ok(Box::new(self.0.dial_host()))
    }
}

fn subject() -> Subject {
    let driver = FakeDriver::new(Arc::new(|guest, stream| {
        Box::pin(async move {
            let service = service_fn(move |request| {
                let guest = guest.clone();
                async move { Ok::<_, std::convert::Infallible>(answer(guest, request).await) }
            });
            let served = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            let _ = served.await;
        })
    }));
    Subject {
        restart: Box::new(move || Arc::new(driver.clone()) as Arc<dyn Driver>),
        keep: Box::new(()),
    }
}

nacre_sandbox::conformance_tests!(subject());
