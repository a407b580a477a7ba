//! The record of a checkpoint as it lies in the database: after which one it came, and a sum over all
//! of it. SQLite notices when a page makes no sense, but not when bytes are others or rows are gone,
//! and a past with a piece missing would be another past.

use crate::checkpoint::CheckpointId;
use crate::code::Malformed;
use crate::delta::Delta;
use crate::error::{Error, Result};

const SUM: usize = 8;
const NUMBER: usize = 8;

/// `previous` is 0 for the first.
pub(super) fn seal(previous: CheckpointId, delta: &Delta) -> Result<Vec<u8>> {
    let record = delta
        .encode()
        .map_err(|error| Error::Io { context: "compress a record".to_owned(), source: error })?;
    let body = [&previous.to_le_bytes()[..], &record].concat();
    Ok([&sum(&body)[..], &body].concat())
}

pub(super) fn unseal(sealed: &[u8]) -> Result<(CheckpointId, Delta), Malformed> {
    let (expected, body) = sealed.split_first_chunk::<SUM>().ok_or(Malformed)?;
    if sum(body) != *expected {
        return Err(Malformed);
    }
    let (previous, record) = body.split_first_chunk::<NUMBER>().ok_or(Malformed)?;
    Ok((CheckpointId::from_le_bytes(*previous), Delta::decode(record)?))
}

fn sum(body: &[u8]) -> [u8; SUM] {
    let hash = blake3::hash(body);
    std::array::from_fn(|at| hash.as_bytes()[at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delta::tests::any_delta;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_not_as_it_was_sealed_is_refused(
            delta in any_delta(), previous: u64, at: usize, flip in 1..=255_u8
        ) {
            let mut sealed = seal(previous, &delta).unwrap();
            prop_assert_eq!(unseal(&sealed), Ok((previous, delta)));
            let at = at % sealed.len();
            prop_assert_eq!(unseal(&sealed[..at]), Err(Malformed));
            sealed[at] ^= flip;
            prop_assert_eq!(unseal(&sealed), Err(Malformed));
        }
    }
}
