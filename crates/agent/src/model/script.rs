//! A model that says what it was told to say.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::Value;

use super::{
    Call, Error, Message, Model, Piece, Pieces, Reply, Request, Result, Stop, Usage, WINDOW,
};

/// What happens when it is asked the next time.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    Says(String),
    Calls(Vec<Call>),
    Fails(Error),
    /// Says something and breaks off.
    Breaks(String),
}

impl Line {
    pub fn calls(name: &str, arguments: Value) -> Self {
        Self::Calls(vec![Call { id: format!("call-{name}"), name: name.to_owned(), arguments }])
    }
}

#[derive(Debug)]
pub struct Script {
    lines: Mutex<VecDeque<Line>>,
    /// What it was asked, each time.
    asked: Mutex<Vec<Vec<Message>>>,
    window: u64,
}

impl Script {
    pub fn new(lines: impl IntoIterator<Item = Line>) -> Self {
        let lines = Mutex::new(lines.into_iter().collect());
        Self { lines, asked: Mutex::default(), window: WINDOW }
    }

    pub fn with_window(self, window: u64) -> Self {
        Self { window, ..self }
    }

    /// Goes on with this when it is at its end.
    pub fn add(&self, line: Line) {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push_back(line);
    }

    pub fn asked(&self) -> Vec<Vec<Message>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Model for Script {
    async fn respond(&self, request: &Request<'_>, pieces: &mut Pieces<'_>) -> Result<Reply> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push(request.messages.to_vec());
        let next = self.lines.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let usage = Usage { input: 10, cached: 0, output: 5 };
        match next {
            Some(Line::Says(text)) => {
                for word in text.split_inclusive(' ') {
                    pieces(Piece::Text(word.to_owned()));
                }
                Ok(Reply { text, usage, ..Reply::default() })
            }
            Some(Line::Calls(calls)) => {
                Ok(Reply { calls, usage, stop: Stop::Calls, ..Reply::default() })
            }
            Some(Line::Fails(error)) => Err(error),
            Some(Line::Breaks(text)) => {
                pieces(Piece::Text(text));
                Err(Error::Broken("it hung up".to_owned()))
            }
            None => Err(Error::Refused("the script is at its end".to_owned())),
        }
    }

    fn window(&self) -> u64 {
        self.window
    }
}
