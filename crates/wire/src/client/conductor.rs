//! Conversations. The client's prefix says where: none for a door, `/admin/sandboxes` for the gateway.

use futures_util::StreamExt;
use http::Method;
use serde::de::DeserializeOwned;
use tokio_tungstenite::tungstenite::Message;

use super::{Client, Error, LineReader, Result, WebSocket, drain, empty, read_json};
use crate::conductor::{
    Approve, ChangeConversation, ConversationInfo, ConversationList, CreateConversation,
    ForkConversation, Notice, SaidList, SendMessage, Sent, UndoConversation, UndoneList,
};
use crate::path::text_to_query;

const ALL: &str = "/conductor/conversations";

fn of(id: &str, what: &str) -> String {
    format!("{ALL}/{}{what}", text_to_query(id))
}

impl Client {
    pub async fn conversations(&self) -> Result<ConversationList> {
        self.get_json(ALL).await
    }

    pub async fn search_conversations(&self, words: &str) -> Result<SaidList> {
        self.get_json(&format!("/conductor/search?q={}", text_to_query(words))).await
    }

    pub async fn conversation(&self, id: &str) -> Result<ConversationInfo> {
        self.get_json(&of(id, "")).await
    }

    pub async fn create_conversation(
        &self,
        wanted: &CreateConversation,
    ) -> Result<ConversationInfo> {
        self.post_json(ALL, wanted).await
    }

    pub async fn change_conversation(
        &self,
        id: &str,
        wanted: &ChangeConversation,
    ) -> Result<ConversationInfo> {
        let request = self.json_request(Method::PATCH, &of(id, ""), wanted)?;
        read_json(self.send(request).await?).await
    }

    pub async fn delete_conversation(&self, id: &str) -> Result<()> {
        self.delete(&of(id, "")).await
    }

    pub async fn send_message(&self, id: &str, text: &str) -> Result<Sent> {
        let message = SendMessage { text: text.to_owned() };
        self.post_json(&of(id, "/messages"), &message).await
    }

    pub async fn stop_turn(&self, id: &str) -> Result<()> {
        let request = self.json_request(Method::POST, &of(id, "/stop"), &())?;
        drain(self.send(request).await?).await
    }

    pub async fn approve(&self, id: &str, call: &str, allow: bool) -> Result<()> {
        let answer = Approve { call: call.to_owned(), allow };
        let request = self.json_request(Method::POST, &of(id, "/approve"), &answer)?;
        drain(self.send(request).await?).await
    }

    pub async fn fork_conversation(
        &self,
        id: &str,
        wanted: &ForkConversation,
    ) -> Result<ConversationInfo> {
        self.post_json(&of(id, "/fork"), wanted).await
    }

    pub async fn undo_conversation(
        &self,
        id: &str,
        wanted: &UndoConversation,
    ) -> Result<UndoneList> {
        self.post_json(&of(id, "/undo"), wanted).await
    }

    /// For a supervisor: what happens in conversations from now on.
    pub async fn conversation_notices(&self) -> Result<LineReader<Notice>> {
        let request = self.request(Method::GET, "/host/conversations", empty())?;
        Ok(LineReader::new(self.send(request).await?))
    }

    /// Everything after an event, and with `follow` what comes.
    pub async fn conversation_events(
        &self,
        id: &str,
        after: u64,
        follow: bool,
    ) -> Result<ConversationStream> {
        let path = of(id, &format!("/events?after={after}&follow={follow}"));
        Ok(ConversationStream { socket: self.websocket(&path).await? })
    }
}

/// Events of a conversation as they come.
#[derive(Debug)]
pub struct ConversationStream {
    socket: WebSocket,
}

impl ConversationStream {
    /// `None` at the end of a stream that does not follow, or when the conversation is removed.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => {
                    let read = serde_json::from_str(&text).map(Some);
                    return read
                        .map_err(|error| Error::Protocol(format!("unexpected message: {error}")));
                }
                Some(Ok(Message::Close(_))) => return Ok(None),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(Error::protocol(error)),
                None => return Err(Error::Protocol("the connection ended".to_owned())),
            }
        }
    }
}
