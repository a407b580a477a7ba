use tokio::sync::mpsc::UnboundedSender;

use super::keeper::Message;

/// Somebody at work. What changes until this is dropped is put down to them.
#[derive(Debug)]
pub struct Activity {
    pub(super) number: u64,
    /// Nobody listens when there is no history.
    pub(super) keeper: Option<UnboundedSender<Message>>,
}

impl Drop for Activity {
    fn drop(&mut self) {
        if let Some(keeper) = &self.keeper {
            let _ = keeper.send(Message::End(self.number));
        }
    }
}
