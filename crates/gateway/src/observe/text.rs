//! The counters as Prometheus reads them (text format 0.0.4).

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use nacre_wire::control::{AlertKind, SandboxInfo, SandboxState};

use super::Via;
use super::metrics::{BUCKETS, CLASSES, METHODS, Metrics, PerVia, Upgrade};
use crate::egress::Egress;

/// What `render` writes to cannot fail.
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            let open = if index == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{open}{label}=\"{text}\"");
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    fn per_via<T: std::fmt::Display>(
        &mut self,
        metrics: &Metrics,
        family: (&str, &str, &str),
        value: impl Fn(&PerVia) -> T,
    ) {
        self.family(family.0, family.1, family.2);
        for via in Via::ALL {
            self.sample(family.0, &[("role", via.as_str())], value(metrics.of(via)));
        }
    }
}

pub(super) fn render(
    metrics: &Metrics,
    dropped: u64,
    sandboxes: &[SandboxInfo],
    way_out: &Egress,
) -> String {
    let mut page = Page(String::with_capacity(16 * 1024));
    requests(&mut page, metrics);
    durations(&mut page, metrics);
    let bytes_in = ("nacre_received_bytes_total", "counter", "Bytes of bodies from clients.");
    page.per_via(metrics, bytes_in, |via| read(&via.bytes_in));
    let bytes_out = ("nacre_sent_bytes_total", "counter", "Bytes of bodies to clients.");
    page.per_via(metrics, bytes_out, |via| read(&via.bytes_out));
    let lean = ("nacre_requests_lean_total", "counter", "Requests that took the short way.");
    page.per_via(metrics, lean, |via| read(&via.lean));
    let under_way = ("nacre_requests_under_way", "gauge", "Requests that are being answered.");
    page.per_via(metrics, under_way, |via| via.under_way.load(Ordering::Relaxed));
    let sockets = ("nacre_sockets_open", "gauge", "Upgraded connections that are open.");
    page.per_via(metrics, sockets, |via| via.sockets.load(Ordering::Relaxed));
    upgrades(&mut page, metrics);
    let help = "Sockets asked for soon after one of the same user and sandbox ended.";
    page.family("nacre_socket_reconnects_total", "counter", help);
    page.sample("nacre_socket_reconnects_total", &[], read(&metrics.reconnects));
    page.family("nacre_alerts_total", "counter", "Alerts that began.");
    for (kind, count) in AlertKind::ALL.iter().zip(&metrics.alerts) {
        page.sample("nacre_alerts_total", &[("kind", kind.as_str())], read(count));
    }
    let help = "Lines of the log that were dropped because nobody took them.";
    page.family("nacre_log_lines_dropped_total", "counter", help);
    page.sample("nacre_log_lines_dropped_total", &[], dropped);
    states(&mut page, sandboxes);
    egress(&mut page, way_out);
    page.0
}

fn requests(page: &mut Page, metrics: &Metrics) {
    const NAME: &str = "nacre_requests_total";
    page.family(NAME, "counter", "Requests passed to a sandbox, or answered in its place.");
    for via in Via::ALL {
        for (method, classes) in METHODS.iter().zip(&metrics.of(via).requests) {
            for (class, count) in CLASSES.iter().zip(classes) {
                let count = read(count);
                if count > 0 {
                    let labels = [("role", via.as_str()), ("method", method), ("status", class)];
                    page.sample(NAME, &labels, count);
                }
            }
        }
    }
}

fn durations(page: &mut Page, metrics: &Metrics) {
    const NAME: &str = "nacre_request_duration_seconds";
    const BUCKET: &str = "nacre_request_duration_seconds_bucket";
    page.family(NAME, "histogram", "From the head of a request to the last byte of its answer.");
    for via in Via::ALL {
        let (role, of) = (("role", via.as_str()), metrics.of(via));
        let mut sum = 0;
        for (bound, count) in BUCKETS.iter().zip(&of.durations) {
            sum += read(count);
            let bound = seconds(*bound).to_string();
            page.sample(BUCKET, &[role, ("le", &bound)], sum);
        }
        sum += of.durations.last().map_or(0, read);
        page.sample(BUCKET, &[role, ("le", "+Inf")], sum);
        page.sample(&format!("{NAME}_sum"), &[role], seconds(read(&of.micros)));
        page.sample(&format!("{NAME}_count"), &[role], sum);
    }
}

fn upgrades(page: &mut Page, metrics: &Metrics) {
    const NAME: &str = "nacre_upgrades_total";
    page.family(
        NAME,
        "counter",
        "Requests for a WebSocket or another protocol, by how they ended.",
    );
    for via in Via::ALL {
        for (outcome, count) in Upgrade::ALL.iter().zip(&metrics.of(via).upgrades) {
            let labels = [("role", via.as_str()), ("outcome", outcome.as_str())];
            page.sample(NAME, &labels, read(count));
        }
    }
}

fn egress(page: &mut Page, egress: &Egress) {
    const NAME: &str = "nacre_egress_connections_total";
    let counts = egress.counts();
    page.family(NAME, "counter", "Connections out of sandboxes, by how they ended.");
    for (verdict, count) in counts.verdicts() {
        page.sample(NAME, &[("verdict", verdict.as_str())], count);
    }
    let single = [
        (
            "nacre_egress_sent_bytes_total",
            "counter",
            "Bytes out of sandboxes, of connections that ended.",
            counts.sent(),
        ),
        (
            "nacre_egress_received_bytes_total",
            "counter",
            "Bytes into sandboxes, of connections that ended.",
            counts.received(),
        ),
        (
            "nacre_egress_open",
            "gauge",
            "Connections out of sandboxes that are open.",
            u64::try_from(counts.open()).unwrap_or(0),
        ),
        (
            "nacre_egress_records_lost_total",
            "counter",
            "Records that were not kept because the disk was too slow.",
            egress.log().lost(),
        ),
    ];
    for (name, kind, help, value) in single {
        page.family(name, kind, help);
        page.sample(name, &[], value);
    }
}

fn states(page: &mut Page, sandboxes: &[SandboxInfo]) {
    const NAME: &str = "nacre_sandboxes";
    const STATES: [(&str, SandboxState); 4] = [
        ("stopped", SandboxState::Stopped),
        ("running", SandboxState::Running),
        ("paused", SandboxState::Paused),
        ("failed", SandboxState::Failed),
    ];
    page.family(NAME, "gauge", "Sandboxes there are, by state.");
    for (word, state) in STATES {
        let count = sandboxes.iter().filter(|sandbox| sandbox.state == state).count();
        page.sample(NAME, &[("state", word)], count);
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds for people who draw curves")]
fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
