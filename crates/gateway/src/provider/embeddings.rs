//! The gateway's own question to a model: what vectors some texts have.

use std::time::Duration;

use axum::body::Body;
use http::Request;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http_body_util::{BodyExt, Limited};
use nacre_wire::models::PolicyScope;
use nacre_wire::{ApiError, ErrorKind};
use serde::Deserialize;
use serde_json::json;

use super::tokens::{Mint, Which};
use super::{Caller, Models};

const LIVES: Duration = Duration::from_secs(120);
const LARGEST_ANSWER: usize = 32 * 1024 * 1024;
const PATH: &str = "embeddings";

#[derive(Deserialize)]
struct Answer {
    data: Vec<Embedding>,
}

#[derive(Deserialize)]
struct Embedding {
    index: usize,
    embedding: Vec<f32>,
}

impl Models {
    /// One for each text, in their order, by the way that all calls take: allowed, paid for, recorded.
    /// Refused as an invalid request when it may be because of one of the texts.
    pub(crate) async fn embeddings(
        &self,
        provider: &str,
        model: &str,
        texts: &[String],
    ) -> Result<Vec<Vec<f32>>, ApiError> {
        let scope = PolicyScope {
            providers: vec![provider.to_owned()],
            models: vec![model.to_owned()],
            paths: vec![format!("POST {PATH}")],
            ..PolicyScope::default()
        };
        let lives_ms = u64::try_from(LIVES.as_millis()).ok();
        let mint = Mint { name: "knowledge".to_owned(), scope, lives_ms, automatic: false };
        let (token, secret) = self.tokens.mint(mint).await?;
        let body = json!({ "model": model, "input": texts, "encoding_format": "float" });
        let request = Request::post(format!("{}{provider}/{PATH}", super::call::PREFIX))
            .header(CONTENT_TYPE, "application/json")
            .header(AUTHORIZATION, format!("Bearer {}", secret.reveal()))
            .body(Body::from(body.to_string()))
            .map_err(|error| ApiError::new(ErrorKind::InvalidRequest, error.to_string()))?;
        let response = self.answer(Caller::Outside, request).await;
        let status = response.status();
        let read = Limited::new(response.into_body(), LARGEST_ANSWER).collect().await;
        self.tokens.revoke(Which::Named(&token.row.id)).await?;
        let odd =
            |what: String| ApiError::new(ErrorKind::Unreachable, format!("{provider}: {what}"));
        let bytes = read.map_err(|error| odd(error.to_string()))?.to_bytes();
        if !status.is_success() {
            let said: String = String::from_utf8_lossy(&bytes).chars().take(300).collect();
            let refused = [400, 413, 422].contains(&status.as_u16());
            let kind = if refused { ErrorKind::InvalidRequest } else { ErrorKind::Unreachable };
            return Err(ApiError::new(kind, format!("{provider}: {status}: {said}")));
        }
        let answer: Answer =
            serde_json::from_slice(&bytes).map_err(|error| odd(error.to_string()))?;
        in_order(answer, texts.len()).ok_or_else(|| odd("not one vector for each text".to_owned()))
    }
}

fn in_order(Answer { mut data }: Answer, many: usize) -> Option<Vec<Vec<f32>>> {
    data.sort_by_key(|one| one.index);
    let whole = data.len() == many && data.iter().map(|one| one.index).eq(0..many);
    whole.then(|| data.into_iter().map(|one| one.embedding).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_put_in_the_order_of_the_texts() {
        let answer = |indexes: &[usize]| Answer {
            data: indexes
                .iter()
                .map(|index| Embedding { index: *index, embedding: vec![*index as f32] })
                .collect(),
        };
        assert_eq!(in_order(answer(&[1, 0]), 2), Some(vec![vec![0.0], vec![1.0]]));
        assert_eq!(in_order(answer(&[0]), 2), None);
        assert_eq!(in_order(answer(&[0, 0]), 2), None);
        assert_eq!(in_order(answer(&[]), 0), Some(Vec::new()));
    }
}
