//! Passkeys of the owner: questions that wait for an answer, and what becomes of it.

use std::net::IpAddr;

use nacre_wire::{ApiError, ErrorKind};

use super::webauthn::{self, Expected, Key, decode};
use super::{Auth, Event};
use crate::clock::now_ms;
use crate::sandboxes::errors;
use crate::secret::SecretHash;
use crate::store::PasskeyRow;

const LONGEST_NAME: usize = 64;
const MOST: usize = 20;

/// A question to an authenticator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// As the browser sees this computer.
    pub(crate) origin: String,
    pub(crate) host: String,
    pub(crate) asks: ChallengeFor,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChallengeFor {
    SignIn,
    /// By the session that may add one.
    Enrol(SecretHash),
}

/// What the page sends back, in base64url.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PasskeyAnswer {
    pub(crate) challenge: String,
    pub(crate) id: String,
    pub(crate) client_data: String,
    pub(crate) authenticator_data: String,
    pub(crate) signature: String,
}

impl Challenge {
    fn expects<'a>(&'a self, answer: &'a PasskeyAnswer) -> Expected<'a> {
        Expected { challenge: &answer.challenge, origin: &self.origin, host: &self.host }
    }
}

impl Auth {
    pub(crate) async fn passkeys(&self) -> Result<Vec<PasskeyRow>, ApiError> {
        self.store.passkeys().await.map_err(errors::from_store)
    }

    /// Those that work at this host.
    pub(crate) async fn passkeys_at(&self, host: &str) -> Result<Vec<PasskeyRow>, ApiError> {
        let all = self.passkeys().await?;
        Ok(all.into_iter().filter(|passkey| passkey.host == host).collect())
    }

    pub(crate) async fn enrol_passkey(
        &self,
        challenge: &Challenge,
        answer: &PasskeyAnswer,
        name: &str,
        address: IpAddr,
    ) -> Result<(), ApiError> {
        let refused = |why: String| ApiError::new(ErrorKind::InvalidRequest, why);
        let (Some(client_data), Some(data)) =
            (decode(&answer.client_data), decode(&answer.authenticator_data))
        else {
            return Err(refused("the browser's answer is malformed".to_owned()));
        };
        let enrolled = webauthn::enrol(challenge.expects(answer), &client_data, &data)
            .map_err(|why| refused(why.to_string()))?;
        if self.passkeys().await?.len() >= MOST {
            return Err(refused(format!("there are {MOST} passkeys already")));
        }
        let name: String =
            name.trim().chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect();
        let name = if name.is_empty() { "Passkey".to_owned() } else { name };
        let row = PasskeyRow {
            id: enrolled.id,
            name: name.clone(),
            host: challenge.host.clone(),
            key: enrolled.key.to_bytes(),
            counter: enrolled.counter,
            created_at: now_ms(),
            used_at: None,
        };
        if !self.store.add_passkey(row).await.map_err(errors::from_store)? {
            return Err(refused("this passkey is there already".to_owned()));
        }
        self.note(Event::of("passkey_added").from(address).saying(name)).await;
        Ok(())
    }

    /// Whether it is one of the owner's. Why not goes to the record.
    pub(crate) async fn check_passkey(
        &self,
        challenge: &Challenge,
        answer: &PasskeyAnswer,
    ) -> Result<Result<(), String>, ApiError> {
        let parts =
            [&answer.id, &answer.client_data, &answer.authenticator_data, &answer.signature];
        let [Some(id), Some(client_data), Some(data), Some(signature)] =
            parts.map(|part| decode(part))
        else {
            return Ok(Err("the answer is malformed".to_owned()));
        };
        let all = self.passkeys_at(&challenge.host).await?;
        let Some(row) = all.into_iter().find(|passkey| passkey.id == id) else {
            return Ok(Err("the passkey is not known".to_owned()));
        };
        let Some(key) = Key::from_bytes(&row.key) else {
            return Ok(Err("the passkey cannot be read".to_owned()));
        };
        let expected = challenge.expects(answer);
        let verified =
            webauthn::verify(expected, &key, row.counter, &client_data, &data, &signature);
        let counter = match verified {
            Ok(counter) => counter,
            Err(why) => return Ok(Err(why.to_string())),
        };
        let used = self.store.passkey_used(id, row.counter, counter, now_ms()).await;
        match used.map_err(errors::from_store)? {
            true => Ok(Ok(())),
            false => Ok(Err("the answer was used already".to_owned())),
        }
    }

    pub(crate) async fn remove_passkey(&self, id: &str, address: IpAddr) -> Result<(), ApiError> {
        let gone = || ApiError::new(ErrorKind::NotFound, "there is no such passkey");
        let id = decode(id).ok_or_else(gone)?;
        if !self.store.remove_passkey(id).await.map_err(errors::from_store)? {
            return Err(gone());
        }
        self.note(Event::of("passkey_removed").from(address)).await;
        Ok(())
    }
}
