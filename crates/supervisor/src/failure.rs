//! An [`ApiError`] as an HTTP response.

use axum::Json;
use axum::response::{IntoResponse, Response};
use nacre_wire::error::ErrorBody;
use nacre_wire::{ApiError, ErrorKind};

/// What every handler returns when it cannot do what was asked.
#[derive(Debug, Clone)]
pub struct Failure(pub ApiError);

impl Failure {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(ApiError::new(kind, message))
    }
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Self(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.0.kind.status(), Json(ErrorBody { error: self.0 })).into_response()
    }
}
