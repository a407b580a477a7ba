//! The thread that owns `knowledge.db`.
//!
//! Whoever wants something of the library gives work to it and waits for the answer. The database is
//! opened with the first, so a computer that never asks has none.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use nacre_knowledge::{Error, Library};
use nacre_wire::{ApiError, ErrorKind};
use tokio::sync::{mpsc, oneshot};

/// Work that may wait.
const QUEUE: usize = 64;

type Job = Box<dyn FnOnce(Result<&mut Library, ApiError>) + Send>;

pub(super) struct Desk {
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
}

impl Desk {
    pub(super) fn start(file: &Path, model: String) -> std::io::Result<Self> {
        let (sender, jobs) = mpsc::channel(QUEUE);
        let file = file.to_owned();
        let name = "knowledge".to_owned();
        std::thread::Builder::new().name(name).spawn(move || serve(file, &model, jobs))?;
        Ok(Self { jobs: Mutex::new(Some(sender)) })
    }

    /// Runs it on the thread, after what came before.
    pub(super) async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Library) -> nacre_knowledge::Result<T> + Send + 'static,
    ) -> Result<T, ApiError> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |library| {
            // Who asked may have gone.
            let _ = answer.send(library.and_then(|library| work(library).map_err(plain)));
        });
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        jobs.ok_or_else(closed)?.send(job).await.map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }

    /// What was given before is still done.
    pub(super) fn close(&self) {
        drop(self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

fn serve(file: PathBuf, model: &str, mut jobs: mpsc::Receiver<Job>) {
    let mut library = None;
    while let Some(job) = jobs.blocking_recv() {
        if library.is_none() {
            // Tried again with the next: a full disk may have been emptied.
            match Library::open(&file, model) {
                Ok(opened) => library = Some(opened),
                Err(error) => {
                    tracing::error!(%error, "knowledge.db cannot be opened");
                    job(Err(plain(error)));
                    continue;
                }
            }
        }
        if let Some(library) = &mut library {
            job(Ok(library));
        }
    }
}

fn closed() -> ApiError {
    ApiError::new(ErrorKind::Unavailable, "the gateway stops")
}

pub(super) fn plain(error: Error) -> ApiError {
    let kind = match &error {
        Error::NotFound { .. } => ErrorKind::NotFound,
        Error::Refused { .. } => ErrorKind::InvalidRequest,
        Error::Database(_) | Error::Damaged(_) => ErrorKind::Internal,
    };
    let told = ApiError::new(kind, error.to_string());
    match error.hint() {
        Some(hint) => told.hint(hint),
        None => told,
    }
}
