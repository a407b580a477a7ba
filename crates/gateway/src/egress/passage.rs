//! One connection out, from the moment it is asked for to its record.
//!
//! A [`Request`] is asked for and a [`Passage`] is open, which the record has from then on; whichever is
//! dropped last writes how it ended, so that there is exactly one record, also when the sandbox stops in
//! the middle.

use std::fmt::Display;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Instant;

use nacre_sandbox::SandboxId;
use nacre_wire::egress::{EgressRecord, EgressVerdict};
use nacre_wire::relay::Tunnel;
use nacre_wire::{ApiError, ErrorKind};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::connect::{NoWay, connect};
use super::log::{Entry, Passed};
use super::lookup::Lookup;
use super::policy::Policy;
use super::target::{Host, Target};
use super::{Egress, Open, shown_address};
use crate::clock::now_ms;

/// Connects of one sandbox that may be under way.
const MOST_CONNECTING: u64 = 512;
/// Why a connection ended whose other ends had nothing against it.
const GONE: &str = "the sandbox went away";
const STOPPED: &str = "the gateway stopped";

/// Who asks, and for what.
pub(super) struct Request {
    egress: Egress,
    id: SandboxId,
    record: EgressRecord,
    begun: Instant,
    /// Counted among those that connect.
    counted: bool,
    /// Where the record has it, once it is open.
    entry: Option<Entry>,
    _under_way: TaskTrackerToken,
}

/// The sandbox that asks.
#[derive(Clone, Copy)]
pub(super) struct From<'a> {
    pub(super) id: &'a SandboxId,
    pub(super) name: &'a str,
    pub(super) run: Option<&'a str>,
}

impl Egress {
    /// Connects, or says why not.
    pub(super) async fn reach(
        &self,
        from: From<'_>,
        host: &str,
        port: u16,
    ) -> Result<Passage, ApiError> {
        let name = from.name;
        let mut request = Request::new(self, from, host, port);
        request.pace()?;
        let target = match host.parse::<Host>() {
            Ok(host) => Target { host, port },
            Err(error) => {
                let message = format!("\"{}\" is no host: {error}", host.escape_debug());
                return Err(request.refuse(ApiError::new(ErrorKind::InvalidRequest, message)));
            }
        };
        let (policy, lookup) = request.begin(&target)?;
        let patience = self.0.config.connect_timeout;
        match connect(&lookup, &policy, &target, patience).await {
            Ok((stream, address)) => request.opened(target, stream, address),
            Err(NoWay::Refused(refusal, address)) => {
                request.record.address = shown_address(address);
                request.record.reason = Some(refusal.to_string());
                Err(request.refuse(refusal.error(name, &target)))
            }
            Err(NoWay::Failed(error, address)) => {
                request.record.address = shown_address(address);
                request.record.verdict = EgressVerdict::Failed;
                request.record.reason = Some(error.message.clone());
                Err(error)
            }
        }
    }
}

impl Request {
    fn new(egress: &Egress, from: From<'_>, host: &str, port: u16) -> Self {
        const LONGEST: usize = 255;
        let record = EgressRecord {
            id: 0,
            at: now_ms(),
            sandbox: from.name.to_owned(),
            sandbox_id: from.id.to_string(),
            run: from.run.map(str::to_owned),
            host: host.chars().take(LONGEST).collect(),
            port,
            address: None,
            verdict: EgressVerdict::Broken,
            reason: None,
            sent: 0,
            received: 0,
            duration_ms: 0,
            times: 1,
        };
        Self {
            egress: egress.clone(),
            id: from.id.clone(),
            record,
            begun: Instant::now(),
            counted: false,
            entry: None,
            _under_way: egress.0.under_way.token(),
        }
    }

    /// Whatever is asked for counts, so that no answer is cheap enough to be had without end.
    fn pace(&mut self) -> Result<(), ApiError> {
        let egress = self.egress.clone();
        let mut guests = egress.guests();
        let guest = guests.entry(self.id.clone()).or_insert_with(|| egress.fresh());
        if guest.bucket.take(Instant::now()) {
            return Ok(());
        }
        let why = format!(
            "more than {} connections a second",
            egress.0.config.limits.connects_per_second
        );
        let error =
            has_to_wait(&format!("{}:{}", self.record.host.escape_debug(), self.record.port), &why);
        // One row for all of them: they have been nowhere.
        (self.record.host, self.record.port) = ("*".to_owned(), 0);
        self.record.reason = Some(why);
        Err(self.refuse(error))
    }

    /// Everything that can be said before a name is looked up.
    fn begin(&mut self, target: &Target) -> Result<(Arc<Policy>, Lookup), ApiError> {
        self.record.host = target.host.to_string();
        let egress = self.egress.clone();
        let mut guests = egress.guests();
        let guest = guests.entry(self.id.clone()).or_insert_with(|| egress.fresh());
        if let Err(refusal) = guest.policy.admit(target) {
            self.record.reason = Some(refusal.to_string());
            if let Host::Address(address) = target.host {
                self.record.address = shown_address(Some(address));
            }
            let name = self.record.sandbox.clone();
            return Err(self.refuse(refusal.error(&name, target)));
        }
        let limits = egress.0.config.limits;
        let too_many = if guest.connecting + guest.open.len() as u64 >= limits.connections {
            Some(format!("{} connections are open already", limits.connections))
        } else if guest.connecting >= MOST_CONNECTING {
            Some(format!("{MOST_CONNECTING} connections are being made already"))
        } else {
            None
        };
        if let Some(why) = too_many {
            return Err(self.refuse(has_to_wait(target, &why)));
        }
        guest.connecting += 1;
        self.counted = true;
        Ok((guest.policy.clone(), guest.lookup.clone()))
    }

    fn refuse(&mut self, error: ApiError) -> ApiError {
        self.record.verdict = EgressVerdict::Refused;
        self.record.reason.get_or_insert_with(|| error.message.clone());
        error
    }

    /// Judged once more, and entered in the table, in one step.
    fn opened(
        mut self,
        target: Target,
        stream: TcpStream,
        address: SocketAddr,
    ) -> Result<Passage, ApiError> {
        self.record.address = shown_address(Some(address.ip()));
        let egress = self.egress.clone();
        let mut guests = egress.guests();
        let guest = guests.entry(self.id.clone()).or_insert_with(|| egress.fresh());
        guest.connecting = guest.connecting.saturating_sub(1);
        self.counted = false;
        if let Err(refusal) = guest.policy.still(&target, address.ip()) {
            self.record.reason = Some(refusal.to_string());
            let name = self.record.sandbox.clone();
            return Err(self.refuse(refusal.error(&name, &target)));
        }
        let open = Arc::new(Open {
            target,
            address,
            since: self.record.at,
            passed: Arc::new(Passed::default()),
            cut: CancellationToken::new(),
            why: Mutex::default(),
        });
        let number = egress.0.next.fetch_add(1, Ordering::Relaxed);
        guest.open.insert(number, open.clone());
        drop(guests);
        egress.0.counts.opened();
        ready(&stream);
        let record = EgressRecord { verdict: EgressVerdict::Open, ..self.record.clone() };
        self.entry = egress.0.log.opened(record, &open.passed);
        self.record.reason = Some(GONE.to_owned());
        Ok(Passage { stream: Some(stream), request: self, open, number })
    }
}

fn has_to_wait(target: &impl Display, why: &str) -> ApiError {
    ApiError::new(ErrorKind::TooMany, format!("{target} has to wait: {why}"))
        .hint("close some, or raise the limit in [egress] of nacre.toml")
}

/// What passes is to pass at once, and a peer that is gone is to be noticed.
fn ready(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let _ = rustix::net::sockopt::set_socket_keepalive(stream, true);
}

impl Drop for Request {
    fn drop(&mut self) {
        if self.counted
            && let Some(guest) = self.egress.guests().get_mut(&self.id)
        {
            guest.connecting = guest.connecting.saturating_sub(1);
        }
        let elapsed = self.begun.elapsed().as_millis();
        self.record.duration_ms = u64::try_from(elapsed).unwrap_or(u64::MAX);
        if self.record.reason.as_deref() == Some(GONE) && self.egress.0.under_way.is_closed() {
            self.record.reason = Some(STOPPED.to_owned());
        }
        self.egress.0.counts.count(&self.record);
        self.egress.0.log.ended(self.entry, self.record.clone());
    }
}

/// A connection that is open and entered in the table.
pub(super) struct Passage {
    stream: Option<TcpStream>,
    request: Request,
    open: Arc<Open>,
    number: u64,
}

impl Passage {
    /// Passes bytes both ways until both sides have ended, one broke, or a rule is against it.
    pub(super) async fn run<S: AsyncRead + AsyncWrite + Unpin>(mut self, sandbox: S) {
        let Some(stream) = self.stream.take() else { return };
        let open = self.open.clone();
        let mut tunnel = Tunnel::new(sandbox, stream);
        let passing = poll_fn(|cx| {
            let polled = tunnel.poll(cx, &mut |_, _| {});
            let passed = tunnel.passed();
            open.passed.sent.store(passed.to_far, Ordering::Relaxed);
            open.passed.received.store(passed.to_near, Ordering::Relaxed);
            match polled {
                Poll::Ready(broken) => Poll::Ready(broken.is_some()),
                Poll::Pending => Poll::Pending,
            }
        });
        let (verdict, reason) = tokio::select! {
            biased;
            () = open.cut.cancelled() => {
                let why = open.why.lock().unwrap_or_else(PoisonError::into_inner).take();
                (EgressVerdict::Cut, why.map(|refusal| refusal.to_string()))
            }
            broken = passing => match broken {
                true => (EgressVerdict::Broken, None),
                false => (EgressVerdict::Allowed, None),
            }
        };
        self.request.record.verdict = verdict;
        self.request.record.reason = reason;
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        let request = &mut self.request;
        request.record.sent = self.open.passed.sent();
        request.record.received = self.open.passed.received();
        request.egress.0.counts.closed();
        if let Some(guest) = request.egress.guests().get_mut(&request.id) {
            guest.open.remove(&self.number);
        }
    }
}
