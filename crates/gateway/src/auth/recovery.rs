//! Recovery codes: ten, made together, shown once.

use nacre_wire::ApiError;

use super::{Auth, Code, Event};
use crate::clock::now_ms;
use crate::sandboxes::errors;

const COUNT: usize = 10;

impl Auth {
    /// A new set; the one before stops working.
    pub(crate) async fn make_codes(&self) -> Result<Vec<Code>, ApiError> {
        let codes: Result<Vec<Code>, _> = (0..COUNT).map(|_| Code::generate()).collect();
        let codes = codes.map_err(|error| ApiError::io("random numbers", &error))?;
        let hashes = codes.iter().map(Code::hash).collect();
        self.store.replace_codes(hashes).await.map_err(errors::from_store)?;
        self.note(Event::of("recovery_codes_created")).await;
        Ok(codes)
    }

    /// Whether it was one that had not been used. It is used up by asking.
    pub(crate) async fn redeem_code(&self, typed: &str) -> Result<bool, ApiError> {
        let Some(code) = Code::typed(typed) else { return Ok(false) };
        self.store.take_code(code.hash(), now_ms()).await.map_err(errors::from_store)
    }

    pub(crate) async fn codes_left(&self) -> Result<u32, ApiError> {
        self.store.codes_left().await.map_err(errors::from_store)
    }
}
