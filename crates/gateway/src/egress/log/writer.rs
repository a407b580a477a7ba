//! The thread that writes the record: it alone has the table, and knows which row is whose.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use nacre_wire::egress::{EgressRecord, EgressVerdict};
use tokio::sync::{broadcast, oneshot};

use super::batch::{Change, Plan, Recent};
use super::table::{Sofar, Table};
use super::{Entry, Job, Passed, QUEUE, Query};
use crate::clock::now_ms;

/// How long the first record of a batch waits for others, and in which steps.
const GATHER: Duration = Duration::from_millis(200);
const STEP: Duration = Duration::from_millis(20);
/// How old the numbers of an open connection may be when the gateway is killed.
const FRESHEN: Duration = Duration::from_secs(5);
/// How often old records are dropped, in records.
const SWEEP_EVERY: usize = 1000;

type Answer = oneshot::Sender<rusqlite::Result<Vec<EgressRecord>>>;

pub(super) struct Writer {
    table: Table,
    open: HashMap<Entry, Row>,
    recent: Recent,
    /// Ends that could not be written to the row that is there.
    unwritten: Vec<(i64, EgressRecord)>,
    since_sweep: usize,
    freshened: Instant,
    followers: broadcast::Sender<Arc<EgressRecord>>,
    lost: Arc<AtomicU64>,
    waiting: Arc<AtomicUsize>,
}

/// A connection that is open.
struct Row {
    id: i64,
    at: u64,
    passed: Arc<Passed>,
    /// What its row says has passed.
    written: (u64, u64),
}

impl Row {
    fn sofar(&self) -> Sofar {
        let (sent, received) = (self.passed.sent(), self.passed.received());
        let duration_ms = now_ms().saturating_sub(self.at);
        Sofar { id: self.id, sent, received, duration_ms }
    }
}

impl Writer {
    pub(super) fn new(
        table: Table,
        followers: broadcast::Sender<Arc<EgressRecord>>,
        lost: Arc<AtomicU64>,
        waiting: Arc<AtomicUsize>,
    ) -> Self {
        Self {
            table,
            open: HashMap::new(),
            recent: Recent::default(),
            unwritten: Vec::new(),
            since_sweep: 0,
            freshened: Instant::now(),
            followers,
            lost,
            waiting,
        }
    }

    /// Returns when the log is closed.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        loop {
            let first = match self.open.is_empty() && self.unwritten.is_empty() {
                true => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => jobs.recv_timeout(FRESHEN),
            };
            let (changes, reads) = match first {
                Ok(first) => self.gather(first, jobs),
                Err(RecvTimeoutError::Timeout) => Default::default(),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            self.write(changes);
            if self.freshened.elapsed() >= FRESHEN {
                self.freshen();
            }
            for (query, answer) in reads {
                let _ = answer.send(self.read(&query));
            }
        }
        self.freshen();
        if let Err(error) = self.table.end_open("the gateway stopped") {
            tracing::warn!(%error, "egress.db: what was open is not said to have ended");
        }
    }

    fn gather(&self, first: Job, jobs: &Receiver<Job>) -> (Vec<Change>, Vec<(Query, Answer)>) {
        let (mut changes, mut reads) = (Vec::new(), Vec::new());
        let mut sort = |job| match job {
            Job::Opened { entry, record, passed } => {
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                changes.push(Change::Opened(entry, record, passed));
            }
            Job::Ended { entry, record } => {
                if entry.is_none() {
                    self.waiting.fetch_sub(1, Ordering::Relaxed);
                }
                changes.push(Change::Ended(entry, record));
            }
            Job::Read { query, answer } => reads.push((query, answer)),
        };
        let mut next = match jobs.try_recv() {
            Ok(next) => Some(next),
            Err(_) => {
                if !matches!(first, Job::Read { .. }) {
                    self.wait_for_others();
                }
                jobs.try_recv().ok()
            }
        };
        sort(first);
        while let Some(job) = next {
            sort(job);
            next = jobs.try_recv().ok();
        }
        (changes, reads)
    }

    /// Not for so many that there is no room for the next.
    fn wait_for_others(&self) {
        let begun = Instant::now();
        while begun.elapsed() < GATHER && self.waiting.load(Ordering::Relaxed) < QUEUE / 2 {
            std::thread::sleep(STEP);
        }
    }

    fn write(&mut self, changes: Vec<Change>) {
        if changes.is_empty() && self.unwritten.is_empty() {
            return;
        }
        let open = &mut self.open;
        let row_of = |entry| open.remove(&entry).map(|row| row.id);
        let mut plan = Plan::of(changes, &self.recent, row_of);
        plan.ended.append(&mut self.unwritten);
        match self.commit(&plan) {
            Ok(ids) => self.written(plan, &ids),
            Err(error) => self.not_written(plan, &error),
        }
        if self.since_sweep >= SWEEP_EVERY {
            self.since_sweep = 0;
            match self.table.sweep() {
                // A row that is gone counts nothing.
                Ok(true) => self.recent.clear(),
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "egress.db: nothing was dropped"),
            }
        }
    }

    /// The numbers of the new rows.
    fn commit(&mut self, plan: &Plan) -> rusqlite::Result<Vec<i64>> {
        let batch = self.table.begin()?;
        let inserted = plan.fresh.iter().map(|fresh| batch.insert(&fresh.record));
        let ids = inserted.collect::<rusqlite::Result<_>>()?;
        for (id, record) in &plan.ended {
            batch.complete(*id, record)?;
        }
        for (id, times) in &plan.again {
            batch.again(*id, *times)?;
        }
        batch.commit()?;
        Ok(ids)
    }

    fn written(&mut self, plan: Plan, ids: &[i64]) {
        self.since_sweep += ids.len();
        for (fresh, id) in plan.fresh.into_iter().zip(ids.iter().copied()) {
            let at = fresh.record.at;
            if let Some(refused) = fresh.refused {
                self.recent.keep(refused, id, at);
            }
            match fresh.open {
                Some((entry, passed)) => {
                    self.open.insert(entry, Row { id, at, passed, written: (0, 0) });
                }
                None => self.tell(id, fresh.record),
            }
        }
        for (id, record) in plan.ended {
            self.tell(id, record);
        }
    }

    fn not_written(&mut self, plan: Plan, error: &rusqlite::Error) {
        let ended = plan.fresh.iter().filter(|fresh| fresh.open.is_none());
        let refused = ended.map(|fresh| fresh.record.times).chain(plan.again.into_values());
        let lost: u64 = refused.sum();
        self.lost.fetch_add(lost, Ordering::Relaxed);
        tracing::warn!(%error, lost, "egress.db: not written");
        // Those that are open are written when they end; those that have a row are tried again.
        self.unwritten = plan.ended;
    }

    fn tell(&self, id: i64, record: EgressRecord) {
        // Nobody may be listening.
        let _ = self.followers.send(Arc::new(EgressRecord { id, ..record }));
    }

    /// Writes down what has passed over those that are open.
    fn freshen(&mut self) {
        self.freshened = Instant::now();
        let changed = self.open.values_mut().filter_map(|row| {
            let sofar = row.sofar();
            let now = (sofar.sent, sofar.received);
            (std::mem::replace(&mut row.written, now) != now).then_some(sofar)
        });
        let changed: Vec<_> = changed.collect();
        if changed.is_empty() {
            return;
        }
        let written = self.table.begin().and_then(|batch| {
            changed.iter().try_for_each(|sofar| batch.freshen(sofar))?;
            batch.commit()
        });
        if let Err(error) = written {
            tracing::warn!(%error, "egress.db: what has passed is not written down");
        }
    }

    fn read(&self, query: &Query) -> rusqlite::Result<Vec<EgressRecord>> {
        let mut records = self.table.select(query)?;
        if records.iter().all(|record| record.verdict != EgressVerdict::Open) {
            return Ok(records);
        }
        let open: HashMap<_, _> = self.open.values().map(|row| (row.id, row)).collect();
        for record in &mut records {
            if let Some(row) = open.get(&record.id) {
                let sofar = row.sofar();
                (record.sent, record.received) = (sofar.sent, sofar.received);
                record.duration_ms = sofar.duration_ms;
            }
        }
        Ok(records)
    }
}
