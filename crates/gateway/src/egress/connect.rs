//! From an admitted target to a connection, at exactly an address that was judged.
//!
//! A name is looked up once. Every address it has is judged, and one that is closed closes the name:
//! who mixes addresses of this network into the answer is not to be worked around. Then the
//! addresses are tried one after the other, each with a head start over the next (RFC 8305).

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use nacre_wire::{ApiError, ErrorKind};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::lookup::Lookup;
use super::policy::{Policy, Refusal};
use super::target::{Host, Target};

const HEAD_START: Duration = Duration::from_millis(250);
/// More addresses than this of one name are not tried.
const MOST_ADDRESSES: usize = 8;

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum NoWay {
    Refused(Refusal, Option<IpAddr>),
    Failed(ApiError, Option<IpAddr>),
}

/// Looks the target up, judges what is found and connects to it.
pub(crate) async fn connect(
    lookup: &Lookup,
    policy: &Policy,
    target: &Target,
    patience: Duration,
) -> Result<(TcpStream, SocketAddr), NoWay> {
    let until = Instant::now() + patience;
    let addresses = addresses(lookup, target, until).await?;
    for address in &addresses {
        let judged = policy.judge(target, *address);
        judged.map_err(|refusal| NoWay::Refused(refusal, Some(*address)))?;
    }
    let first = addresses.first().copied();
    let raced = race(&addresses[..addresses.len().min(MOST_ADDRESSES)], target.port);
    match timeout_at(until, raced).await {
        Ok(Ok(connected)) => Ok(connected),
        Ok(Err(error)) => {
            let message = format!("{target} cannot be reached: {}", words(&error));
            Err(NoWay::Failed(ApiError::new(ErrorKind::Unreachable, message), first))
        }
        Err(_) => Err(NoWay::Failed(too_long(target, "did not answer", patience), first)),
    }
}

async fn addresses(lookup: &Lookup, target: &Target, until: Instant) -> Result<Vec<IpAddr>, NoWay> {
    let name = match &target.host {
        Host::Address(address) => return Ok(vec![*address]),
        Host::Name(name) => name,
    };
    let patience = until.saturating_duration_since(Instant::now());
    let found = match timeout_at(until, lookup.addresses(name)).await {
        Ok(found) => found,
        Err(_) => return Err(NoWay::Failed(too_long(target, "was not looked up", patience), None)),
    };
    let why = match found {
        Ok(found) if !found.is_empty() => return Ok(found),
        Ok(_) => "it has no address".to_owned(),
        Err(error) => words(&error),
    };
    let message = format!("the name {name} was not found: {why}");
    Err(NoWay::Failed(ApiError::new(ErrorKind::Unreachable, message), None))
}

fn too_long(target: &Target, what: &str, patience: Duration) -> ApiError {
    let message = format!("{target} {what} within {} s", patience.as_secs());
    ApiError::new(ErrorKind::TimedOut, message)
}

/// The system's words, without its number.
fn words(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

/// The first that answers; the error is of the last that did not.
async fn race(addresses: &[IpAddr], port: u16) -> std::io::Result<(TcpStream, SocketAddr)> {
    let mut waiting = addresses.iter().map(|ip| SocketAddr::new(*ip, port));
    let mut trying = FuturesUnordered::new();
    let mut last = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
    loop {
        if let Some(address) = waiting.next() {
            trying.push(async move { (TcpStream::connect(address).await, address) });
        }
        let more = waiting.len() > 0;
        tokio::select! {
            Some((tried, address)) = trying.next() => match tried {
                Ok(stream) => return Ok((stream, address)),
                Err(error) => last = error,
            },
            () = tokio::time::sleep(HEAD_START), if more => {}
        }
        if trying.is_empty() && !more {
            return Err(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::lookup::Lookups;
    use crate::egress::rule::Rule;
    use nacre_atproto::{Answer, Resolve};
    use nacre_wire::egress::EgressEffect;
    use std::sync::{Arc, Mutex};
    use tokio::net::TcpListener;

    /// Gives its answers one after the other; the last again and again.
    struct Changing(Mutex<Vec<Vec<IpAddr>>>);

    impl Resolve for Changing {
        fn addresses(&self, _: &str) -> Answer<Vec<IpAddr>> {
            let mut answers = self.0.lock().unwrap();
            let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
            Box::pin(std::future::ready(Ok(answer)))
        }

        fn texts(&self, _: &str) -> Answer<Vec<String>> {
            Box::pin(std::future::ready(Ok(Vec::new())))
        }
    }

    fn changing(answers: &[&[&str]]) -> (Lookup, Arc<Changing>) {
        let read = |answer: &&[&str]| answer.iter().map(|ip| ip.parse().unwrap()).collect();
        let changing = Arc::new(Changing(Mutex::new(answers.iter().map(read).collect())));
        let resolver: Arc<dyn Resolve> = changing.clone();
        (Lookups::new(resolver).share(), changing)
    }

    fn allowing(pattern: &str) -> Policy {
        let (effect, pattern) = (EgressEffect::Allow, pattern.parse().unwrap());
        let rule = Rule { effect, pattern, private: false };
        Policy { rules: vec![rule], ..Policy::default() }
    }

    fn to(port: u16) -> Target {
        Target { host: Host::Name("rebind.example.com".to_owned()), port }
    }

    const PATIENCE: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn rebinding_a_name_between_check_and_connect_is_not_possible() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        // Allowed at first, somebody else's the next time anybody asks.
        let (resolver, left) = changing(&[&["127.0.0.1"], &["127.0.0.2"], &["10.0.0.1"]]);
        let policy = allowing("127.0.0.1/32");
        let (stream, address) = connect(&resolver, &policy, &to(port), PATIENCE).await.unwrap();
        assert_eq!(
            (stream.peer_addr().unwrap(), address.ip().to_string().as_str()),
            (address, "127.0.0.1")
        );
        assert_eq!(left.0.lock().unwrap().len(), 2, "it was looked up once");
        let next = connect(&resolver, &policy, &to(port), PATIENCE).await.unwrap_err();
        assert!(
            matches!(next, NoWay::Refused(Refusal::Private(ip), _) if ip.to_string() == "127.0.0.2")
        );
    }

    #[tokio::test]
    async fn one_closed_address_among_good_ones_closes_the_name() {
        let (resolver, _) = changing(&[&["1.1.1.1", "169.254.169.254"]]);
        let refused = connect(&resolver, &Policy::default(), &to(80), PATIENCE).await.unwrap_err();
        assert!(matches!(refused, NoWay::Refused(Refusal::Private(_), Some(_))), "{refused:?}");
    }

    #[tokio::test]
    async fn the_second_address_is_tried_when_nobody_is_at_the_first() {
        let listener = TcpListener::bind("127.0.0.3:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (resolver, _) = changing(&[&["127.0.0.2", "127.0.0.3"]]);
        let policy = allowing("127.0.0.0/8");
        let (_, address) = connect(&resolver, &policy, &to(port), PATIENCE).await.unwrap();
        assert_eq!(address.ip().to_string(), "127.0.0.3");
        drop(listener);
        let failed = connect(&resolver, &policy, &to(port), PATIENCE).await.unwrap_err();
        let NoWay::Failed(error, _) = failed else { panic!("{failed:?}") };
        assert_eq!(error.kind, ErrorKind::Unreachable);
        assert!(error.message.ends_with("connection refused"), "{}", error.message);
    }

    #[tokio::test]
    async fn a_name_that_nobody_knows_fails_in_words() {
        let (resolver, _) = changing(&[&[]]);
        let failed = connect(&resolver, &Policy::default(), &to(80), PATIENCE).await.unwrap_err();
        let NoWay::Failed(error, None) = failed else { panic!("{failed:?}") };
        assert_eq!(error.message, "the name rebind.example.com was not found: it has no address");
    }
}
