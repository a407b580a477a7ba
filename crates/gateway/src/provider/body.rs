//! The body of a call, read whole: which model it asks for decides whether it is made.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use bytes::BytesMut;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http_body_util::BodyExt;

use super::format::{Reason, Refusal};

/// A client that sends more slowly than this has gone, or means harm.
const PATIENCE: Duration = Duration::from_secs(120);
/// Bodies that are held at once: what is larger than all of it is never read.
const ROOM: u64 = 512 * MIB;
/// Of that, what one sandbox may take up, and two of the largest bodies in any case.
const SHARE: u64 = ROOM / 8;
const MIB: u64 = 1024 * 1024;
/// Taken in such steps.
const STEP: u64 = 64 * 1024;

/// Memory for bodies, of all calls together. It is taken when bytes are there, not when they are announced, and
/// nobody takes more than a share: who sends slowly is in nobody's way.
#[derive(Clone, Default)]
pub(crate) struct Room(Arc<Mutex<Taken>>);

#[derive(Default)]
struct Taken {
    all: u64,
    /// By sandbox; what comes from outside has one share.
    shares: HashMap<Option<Arc<str>>, u64>,
}

/// What a body takes up, until this is dropped.
pub(crate) struct Place {
    room: Room,
    of: Option<Arc<str>>,
    bytes: u64,
}

/// A body, for as long as it has its place in the [`Room`].
pub(crate) struct Held {
    pub(crate) bytes: Bytes,
    pub(crate) place: Place,
}

impl Room {
    /// `of` is the sandbox that it comes from.
    pub(crate) async fn read(
        &self,
        of: Option<Arc<str>>,
        headers: &HeaderMap,
        body: Body,
        largest: u64,
    ) -> Result<Held, Refusal> {
        if headers.contains_key(CONTENT_ENCODING) {
            let message = "a compressed body cannot be checked; send it as it is";
            return Err(Refusal::new(Reason::Invalid, message));
        }
        let length: Option<u64> =
            headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if length.is_some_and(|length| length > largest) {
            return Err(too_large(largest));
        }
        let mut place = Place { room: self.clone(), of, bytes: 0 };
        match tokio::time::timeout(PATIENCE, collect(body, largest, &mut place)).await {
            Ok(bytes) => Ok(Held { bytes: bytes?, place }),
            Err(_) => {
                let message = format!("the body did not come within {} s", PATIENCE.as_secs());
                Err(Refusal::new(Reason::TooSlow, message))
            }
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Makes it as large as that, if there is room.
    fn grow(&mut self, wanted: u64, largest: u64) -> Result<(), Refusal> {
        let Some(more) =
            wanted.next_multiple_of(STEP).checked_sub(self.bytes).filter(|more| *more > 0)
        else {
            return Ok(());
        };
        let mut taken = self.room.taken();
        let share = taken.shares.get(&self.of).copied().unwrap_or_default();
        let message = if share + more > SHARE.max(largest.saturating_mul(2)) {
            "too many large calls from here are under way; try again in a moment"
        } else if taken.all + more > ROOM {
            "too many large calls are under way; try again in a moment"
        } else {
            taken.all += more;
            taken.shares.insert(self.of.clone(), share + more);
            self.bytes += more;
            return Ok(());
        };
        Err(Refusal::new(Reason::Busy, message))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.room.taken();
        taken.all = taken.all.saturating_sub(self.bytes);
        let Some(share) = taken.shares.get_mut(&self.of) else { return };
        *share = share.saturating_sub(self.bytes);
        if *share == 0 {
            taken.shares.remove(&self.of);
        }
    }
}

async fn collect(mut body: Body, largest: u64, place: &mut Place) -> Result<Bytes, Refusal> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame
            .map_err(|_| Refusal::new(Reason::Invalid, "the body broke off before its end"))?;
        let Ok(data) = frame.into_data() else { continue };
        let length = (whole.len() + data.len()) as u64;
        if length > largest {
            return Err(too_large(largest));
        }
        place.grow(length, largest)?;
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

fn too_large(largest: u64) -> Refusal {
    let message = format!(
        "the body is larger than {} MiB; [models] largest_body_bytes in nacre.toml sets how large one may be",
        largest / MIB
    );
    Refusal::new(Reason::TooLarge, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt;

    const LARGEST: u64 = 32 * MIB;

    /// As much as was announced never comes.
    fn stuck(first: usize) -> (HeaderMap, Body) {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_LENGTH, LARGEST.into());
        let first = Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; first]));
        let rest = futures_util::stream::pending();
        (headers, Body::from_stream(futures_util::stream::iter([first]).chain(rest)))
    }

    fn sandbox(name: &str) -> Option<Arc<str>> {
        Some(name.into())
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_drips_is_given_up() {
        let drip = futures_util::stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            Some((Ok::<_, std::io::Error>(Bytes::from_static(b"x")), ()))
        });
        let room = Room::default();
        let refused = room.read(None, &HeaderMap::new(), Body::from_stream(drip), MIB).await;
        assert_eq!(refused.err().unwrap().reason, Reason::TooSlow);
        assert_eq!(room.taken().all, 0, "its place is free again");
        assert!(room.taken().shares.is_empty());
    }

    #[tokio::test]
    async fn large_ones_are_refused_as_soon_as_that_is_known() {
        let room = Room::default();
        let mut headers = HeaderMap::new();
        let refused = room.read(None, &headers, Body::from(vec![0; 2000]), 1999).await;
        assert_eq!(refused.err().unwrap().reason, Reason::TooLarge);
        headers.insert(CONTENT_LENGTH, 2000.into());
        let endless = futures_util::stream::pending::<Result<Bytes, std::io::Error>>();
        let refused = room.read(None, &headers, Body::from_stream(endless), 1999).await;
        assert_eq!(refused.err().unwrap().reason, Reason::TooLarge);
        let held = room.read(None, &HeaderMap::new(), Body::from("{}"), 1999).await.ok().unwrap();
        assert_eq!(held.bytes, "{}");
    }

    #[tokio::test]
    async fn slow_bodies_of_one_sandbox_leave_room_for_others() {
        let room = Room::default();
        let mut reading = tokio::task::JoinSet::new();
        // Announced: four times what there is. Sent: as much as one sandbox may.
        for _ in 0..64 {
            let room = room.clone();
            let (headers, body) = stuck(usize::try_from(MIB).unwrap());
            reading.spawn(async move {
                room.read(sandbox("a"), &headers, body, LARGEST).await.map(drop)
            });
        }
        while room.taken().all < SHARE {
            tokio::task::yield_now().await;
        }
        let read = |name: &str, body: Body| {
            let (room, name) = (room.clone(), sandbox(name));
            async move { room.read(name, &HeaderMap::new(), body, LARGEST).await }
        };
        let refused = read("a", Body::from("x")).await.err().unwrap();
        assert_eq!(refused.reason, Reason::Busy);
        assert!(refused.message.contains("from here"), "{}", refused.message);
        let large = vec![0; usize::try_from(LARGEST).unwrap()];
        let held = read("b", Body::from(large)).await.ok().unwrap();
        assert_eq!(held.place.bytes, LARGEST);
        reading.shutdown().await;
        assert!(read("a", Body::from("x")).await.is_ok(), "and for itself when they are over");
        drop(held);
        assert_eq!(room.taken().all, 0);
    }

    #[test]
    fn there_is_room_for_so_much_at_once() {
        let room = Room::default();
        let place = |name: String| Place { room: room.clone(), of: Some(name.into()), bytes: 0 };
        let mut places: Vec<_> = (0..8).map(|number| place(number.to_string())).collect();
        places.iter_mut().for_each(|place| place.grow(SHARE, LARGEST).unwrap());
        let refused = place("last".to_owned()).grow(1, LARGEST).unwrap_err();
        assert_eq!(refused.reason, Reason::Busy);
        places.truncate(6);
        place("last".to_owned()).grow(1, LARGEST).unwrap();
        assert!(place("large".to_owned()).grow(SHARE + STEP, SHARE + STEP).is_ok(), "one fits");
    }
}
