//! Random words for states, verifiers and token ids.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::error::Error;

/// 256 random bits in base64url: 43 characters.
pub(crate) fn word() -> Result<String, Error> {
    let mut bytes = [0; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        let more = getrandom(&mut bytes[filled..], GetRandomFlags::empty());
        filled += more.map_err(|errno| Error::Local(format!("no random numbers: {errno}")))?;
    }
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
