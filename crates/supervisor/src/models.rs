//! Models: a port on loopback that leads to the host, and the variables that name it.
//!
//! Each connection becomes one of the way up and is joined with it; what passes is none of our
//! business. Which variables there are the host says, as soon as that changes, on a question that
//! waits for the answer: a command that starts finds them here and asks nobody.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use nacre_wire::client::{self, Client};
use nacre_wire::models::{AskEnvironment, GuestEnvironment, PORT, PROTOCOL};
use nacre_wire::relay::join;
use nacre_wire::{ApiError, ErrorKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::host;
use crate::surroundings::Surroundings;

/// The name of our part of the surroundings.
const PART: &str = "models";
/// Connections at once; the next waits until one of them ends.
const CONNECTIONS: usize = 256;
const SWITCHING: Duration = Duration::from_secs(10);
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A host that is too old to know is asked again in case it was replaced.
const OLD_HOST: Duration = Duration::from_secs(60);

/// On the current runtime, for as long as that runs.
pub(crate) fn start(host: Client, surroundings: Surroundings) {
    surroundings.expect(PART);
    tokio::spawn(listen(host.clone()));
    tokio::spawn(follow(host, surroundings));
}

async fn listen(host: Client) {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    let listener = match TcpListener::bind(address).await {
        Ok(listener) => listener,
        Err(error) => {
            return tracing::error!(%address, %error, "models cannot be reached from here");
        }
    };
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let host = host.clone();
                tokio::spawn(async move {
                    connection(stream, &host).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection to models was not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, host: &Client) {
    // What comes piece by piece is passed on piece by piece.
    let _ = stream.set_nodelay(true);
    let switched = tokio::time::timeout(SWITCHING, host.switch("/host/provider", PROTOCOL)).await;
    let error = match switched {
        Ok(Ok(raw)) => {
            join(stream, raw.stream, raw.early).await;
            return;
        }
        Ok(Err(client::Error::Api(error))) => error,
        Ok(Err(error)) => host::unreachable(error),
        Err(_) => host::unreachable("it does not answer"),
    };
    refuse(stream, error).await;
}

/// In a shape that the SDKs of every provider show the message of.
async fn refuse(mut stream: TcpStream, error: ApiError) {
    let hint = error.hint.map_or_else(String::new, |hint| format!("; {hint}"));
    let message = format!("nacre: {}{hint}", error.message);
    let body = serde_json::json!({
        "type": "error",
        "error": { "type": "api_error", "code": "unavailable", "message": message },
    })
    .to_string();
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let said = async {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        stream.shutdown().await?;
        // Closed with unread bytes in it, it would be reset, and the answer lost.
        let mut rest = [0; 4096];
        while stream.read(&mut rest).await? > 0 {}
        Ok::<_, std::io::Error>(())
    };
    let _ = tokio::time::timeout(Duration::from_secs(2), said).await;
}

/// Keeps the variables as the host says them.
async fn follow(host: Client, surroundings: Surroundings) {
    let mut held = AskEnvironment::default();
    let mut pause = FIRST_PAUSE;
    loop {
        match host.post_json::<GuestEnvironment>("/host/environment", &held).await {
            Ok(told) => {
                pause = FIRST_PAUSE;
                held = AskEnvironment { token: told.token, version: Some(told.version) };
                surroundings.set(PART, told.variables);
                continue;
            }
            Err(client::Error::Api(error)) if error.kind == ErrorKind::NotFound => {
                surroundings.set(PART, Default::default());
                tokio::time::sleep(OLD_HOST).await;
            }
            Err(error) => {
                tracing::debug!(%error, "the host does not say what commands are to know");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}
