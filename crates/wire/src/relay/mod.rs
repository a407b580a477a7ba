//! One HTTP/1.1 exchange handed on, as both proxies do it: the gateway to the door, the supervisor
//! to the app.
//!
//! ```text
//!  request ─▶ Upload ─▶ Link ─▶ stream        the next hop
//!  response ◀─ Download ◀─┘ └──▶ Pool         a link that is free again
//!  upgrade: Raw ◀──────── join ────────▶      bytes, both ways
//! ```
//! A [`Link`] is driven by whoever waits for its response, in the same task: a request costs no
//! task and no message to one. Only an upload that is still under way when its response begins gets
//! a task, because it must go on when nobody reads the response. Nothing here keeps more of a body
//! than the piece that is being passed on.

mod download;
mod link;
mod pool;
mod tunnel;
mod upload;

use bytes::Bytes;
use http_body::Body;

use crate::client::BoxError;

pub use download::Download;
pub use link::{Answer, Failed, Link, Raw};
pub use pool::Pool;
pub use tunnel::{Joined, Side, Tunnel, join};
pub use upload::{Progress, Upload};

/// The body of a request as it comes in.
pub trait Source: Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static {}
impl<B: Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static> Source for B {}
