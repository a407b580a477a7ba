//! What the desktop runs on, which this file carries and all sandboxes share.

use nacre_gateway::Modules;

static ARCHIVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/modules.tar.gz"));
static ID: &str = include_str!(concat!(env!("OUT_DIR"), "/modules.id"));

/// `None` when this file was built without a desktop.
pub(crate) fn modules() -> Option<Modules> {
    (!ARCHIVE.is_empty()).then(|| Modules { id: ID.trim(), archive: ARCHIVE })
}
