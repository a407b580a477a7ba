//! The owner's choices, kept in the store where nothing in the sandbox reaches them.

use std::fs;
use std::io;
use std::path::Path;

use nacre_wire::ApiError;
use nacre_wire::history::HistorySettings;

const FILE: &str = "settings.json";

/// Those of a store without any are the defaults.
pub(super) fn load(store: &Path) -> HistorySettings {
    match fs::read(store.join(FILE)) {
        Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
            tracing::error!(%error, "history settings cannot be read; using the defaults");
            HistorySettings::default()
        }),
        Err(_) => HistorySettings::default(),
    }
}

/// Replaces them in one step.
pub(super) fn save(store: &Path, settings: &HistorySettings) -> Result<(), ApiError> {
    let write = || -> io::Result<()> {
        let new = store.join("settings.json.new");
        fs::write(&new, serde_json::to_vec_pretty(settings)?)?;
        fs::File::open(&new)?.sync_all()?;
        fs::rename(&new, store.join(FILE))
    };
    write().map_err(|error| ApiError::io("history settings", &error))
}
