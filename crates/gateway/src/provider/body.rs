//! The body of a call, read whole: which model it asks for decides whether it is made.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use bytes::BytesMut;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::format::{Reason, Refusal};

/// A client that sends more slowly than this has gone, or means harm.
const PATIENCE: Duration = Duration::from_secs(120);
/// Bodies that are held at once, in KiB: what is larger than all of it is never read.
const ROOM_KIB: usize = 512 * 1024;
const KIB: u64 = 1024;

/// Memory for bodies, of all calls together.
#[derive(Clone)]
pub(crate) struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ROOM_KIB)))
    }
}

/// A body, for as long as it has its place in the [`Room`].
pub(crate) struct Held {
    pub(crate) bytes: Bytes,
    pub(crate) place: OwnedSemaphorePermit,
}

impl Room {
    pub(crate) async fn read(
        &self,
        headers: &HeaderMap,
        body: Body,
        largest: u64,
    ) -> Result<Held, Refusal> {
        if headers.contains_key(CONTENT_ENCODING) {
            let message = "a compressed body cannot be checked; send it as it is";
            return Err(Refusal::new(Reason::Invalid, message));
        }
        let length =
            headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let most: u64 = length.unwrap_or(largest);
        if most > largest {
            return Err(too_large(largest));
        }
        let kib = u32::try_from(most.div_ceil(KIB)).unwrap_or(u32::MAX);
        let mut place = self.0.clone().try_acquire_many_owned(kib).map_err(|_| {
            Refusal::new(Reason::Busy, "too many large calls are under way; try again in a moment")
        })?;
        match tokio::time::timeout(PATIENCE, collect(body, largest)).await {
            Ok(bytes) => {
                let bytes = bytes?;
                let used = bytes.len().div_ceil(1024);
                // What was kept free for a length that nobody told is free again.
                drop(place.split(place.num_permits().saturating_sub(used)));
                Ok(Held { bytes, place })
            }
            Err(_) => {
                let message = format!("the body did not come within {} s", PATIENCE.as_secs());
                Err(Refusal::new(Reason::TooSlow, message))
            }
        }
    }
}

async fn collect(mut body: Body, largest: u64) -> Result<Bytes, Refusal> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame
            .map_err(|_| Refusal::new(Reason::Invalid, "the body broke off before its end"))?;
        let Ok(data) = frame.into_data() else { continue };
        if (whole.len() + data.len()) as u64 > largest {
            return Err(too_large(largest));
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

fn too_large(largest: u64) -> Refusal {
    let message = format!(
        "the body is larger than {} MiB; [models] largest_body_bytes in nacre.toml sets how large one may be",
        largest / KIB / KIB
    );
    Refusal::new(Reason::TooLarge, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_that_drips_is_given_up() {
        let drip = futures_util::stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            Some((Ok::<_, std::io::Error>(Bytes::from_static(b"x")), ()))
        });
        let room = Room::default();
        let refused = room.read(&HeaderMap::new(), Body::from_stream(drip), 1 << 20).await;
        assert_eq!(refused.err().unwrap().reason, Reason::TooSlow);
        assert_eq!(room.0.available_permits(), ROOM_KIB, "its place is free again");
    }

    #[tokio::test]
    async fn large_ones_are_refused_as_soon_as_that_is_known() {
        let room = Room::default();
        let mut headers = HeaderMap::new();
        let refused = room.read(&headers, Body::from(vec![0; 2000]), 1999).await;
        assert_eq!(refused.err().unwrap().reason, Reason::TooLarge);
        headers.insert(CONTENT_LENGTH, 2000.into());
        let endless = futures_util::stream::pending::<Result<Bytes, std::io::Error>>();
        let refused = room.read(&headers, Body::from_stream(endless), 1999).await;
        assert_eq!(refused.err().unwrap().reason, Reason::TooLarge);
        let held = room.read(&HeaderMap::new(), Body::from("{}"), 1999).await.ok().unwrap();
        assert_eq!(held.bytes, "{}");
    }

    #[tokio::test]
    async fn there_is_room_for_so_much_at_once() {
        let room = Room::default();
        let mut headers = HeaderMap::new();
        let all = ROOM_KIB as u64 * KIB;
        headers.insert(CONTENT_LENGTH, all.into());
        let endless = futures_util::stream::pending::<Result<Bytes, std::io::Error>>();
        let reading = tokio::spawn({
            let room = room.clone();
            async move { room.read(&headers, Body::from_stream(endless), all).await.is_ok() }
        });
        while room.0.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let refused = room.read(&HeaderMap::new(), Body::from("x"), 1024).await;
        assert_eq!(refused.err().unwrap().reason, Reason::Busy);
        reading.abort();
        assert!(reading.await.is_err());
        let held = room.read(&HeaderMap::new(), Body::from("x"), 1024).await.ok().unwrap();
        assert_eq!(held.place.num_permits(), 1);
    }
}
