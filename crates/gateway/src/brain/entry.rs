//! One conversation in the table, asleep or awake.

use std::sync::Arc;

use nacre_wire::conductor::{ConversationInfo, ConversationState};

use super::conversation::Handle;
use super::index::{Index, Meta};
use super::log::Log;
use super::memory::Memory;
use super::news::News;

pub(super) struct Entry {
    pub(super) meta: Meta,
    /// Present while it is awake.
    pub(super) awake: Option<Handle>,
}

impl Entry {
    pub(super) fn info(&self) -> ConversationInfo {
        let Meta {
            id,
            title,
            created_at,
            updated_at,
            role,
            mode,
            model,
            parent,
            working: _,
            undoing: _,
            seq,
            steps,
            input_tokens,
            output_tokens,
            dollars,
        } = self.meta.clone();
        let awake = self.awake.as_ref();
        let state = awake.map_or(ConversationState::Idle, Handle::state);
        ConversationInfo {
            id,
            title,
            created_at,
            updated_at,
            role,
            mode,
            model,
            parent,
            state,
            seq: awake.map_or(seq, |handle| handle.log.last()),
            steps,
            input_tokens,
            output_tokens,
            dollars,
        }
    }
}

/// Reads the journal, which says of a turn without an end that it was interrupted.
pub(super) fn recover(index: &Index, meta: &mut Meta) {
    let path = index.journal(&meta.id);
    let loaded = Log::load(&path).and_then(|log| {
        let log = Arc::new(log);
        Memory::load(&path, &meta.id, log.clone(), News::default()).map(|memory| (memory, log))
    });
    match loaded {
        Ok((memory, log)) => {
            meta.seq = log.last();
            memory.describe(meta);
            if std::mem::take(&mut meta.working)
                && let Err(error) = index.write(meta)
            {
                tracing::error!(id = meta.id, %error, "a conversation cannot be written down");
            }
        }
        // It is told again to whoever speaks with it.
        Err(error) => tracing::error!(id = meta.id, %error, "a conversation cannot be read"),
    }
}
