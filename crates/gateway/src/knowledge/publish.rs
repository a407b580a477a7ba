//! From a file to an edition.

use nacre_knowledge::edition::{CitationOf, Place};
use nacre_knowledge::{Citation, Library, Publish, Published, Way, passage};
use nacre_wire::knowledge::{CiteRequest, EditionInfo, EditionView, PublishRequest};
use nacre_wire::{ApiError, ErrorKind};

use super::{Knowledge, convert, which};
use crate::clock::now_ms;

/// As much as an edition may have.
pub(super) const LARGEST: u64 = 4 << 20;

impl Knowledge {
    /// An edition of a document with this content, by the owner.
    pub(super) async fn publish_bytes(
        &self,
        path: &str,
        title: String,
        media_type: Option<String>,
        content: Vec<u8>,
    ) -> Result<EditionInfo, ApiError> {
        let document = which::relative(path.as_ref()).filter(|path| !path.is_empty());
        let document = document.ok_or_else(|| {
            let message = format!("\"{}\" is not a path in the workspace", path.escape_debug());
            ApiError::new(ErrorKind::InvalidPath, message)
        })?;
        let media_type = media_type.unwrap_or_else(|| which::media_type(&document).to_owned());
        check_media_type(&media_type)?;
        let publish = Publish {
            author: self.author(),
            title,
            document,
            media_type,
            content,
            citations: Vec::new(),
        };
        let published = self.with(move |library| library.publish(publish, now_ms())).await?;
        if self.config.embeddings.is_some() {
            self.waiting.notify_one();
        }
        let Published { info, new } = published;
        Ok(EditionInfo { new: Some(new), ..convert::edition(&info) })
    }

    /// A file of a sandbox, or a text that came along.
    pub(super) async fn publish(&self, wanted: PublishRequest) -> Result<EditionInfo, ApiError> {
        let content = match wanted.text {
            Some(text) => text.into_bytes(),
            None => {
                let sandbox = wanted.sandbox.as_deref().unwrap_or("live");
                self.read_file(sandbox, &wanted.path, LARGEST).await?
            }
        };
        self.publish_bytes(&wanted.path, wanted.title, wanted.media_type, content).await
    }

    /// A file of a sandbox's workspace, through its door.
    pub(super) async fn read_file(
        &self,
        sandbox: &str,
        path: &str,
        at_most: u64,
    ) -> Result<Vec<u8>, ApiError> {
        use nacre_agent::body::{Body, Remote};
        let places = self.places.get().ok_or_else(|| {
            ApiError::new(ErrorKind::Unavailable, "the sandboxes are not there yet")
        })?;
        let sandbox = places.sandboxes.find(sandbox)?;
        sandbox.require_running()?;
        let path = which::relative(path.as_ref()).unwrap_or_else(|| path.to_owned());
        let file = Remote::new(sandbox.client(), "knowledge");
        Ok(file.read_file(&which::absolute(&path), at_most).await?.bytes)
    }

    pub(super) async fn cite(&self, wanted: CiteRequest) -> Result<Citation, ApiError> {
        let CiteRequest { edition, quote } = wanted;
        self.with(move |library| {
            let (edition, lines) = match edition.parse::<Place>() {
                Ok(place) => (place.edition, place.lines),
                // The beginning of a hash, or a document, is enough for who has no address at hand.
                Err(_) => (library.find_edition(&edition)?.info.address, None),
            };
            let quote = quote.filter(|quote| !quote.trim().is_empty());
            library.cite(&CitationOf { edition, lines, quote })
        })
        .await
    }

    /// An edition, and what surrounds it.
    pub(super) async fn edition_view(&self, which: String) -> Result<EditionView, ApiError> {
        self.with(move |library| view(library, &which)).await
    }
}

fn view(library: &Library, which: &str) -> nacre_knowledge::Result<EditionView> {
    let edition = library.find_edition(which)?;
    let address = &edition.info.address;
    let neighbours = |way| -> nacre_knowledge::Result<Vec<String>> {
        let found = library.neighbours(address, way)?;
        Ok(found.iter().map(|info| info.address.to_string()).collect())
    };
    Ok(EditionView {
        references: numbered(&library.references(&edition)?),
        cites: neighbours(Way::Cites)?,
        cited_by: neighbours(Way::CitedBy)?,
        edition: convert::edition(&edition.info),
        text: which::text(edition.content),
    })
}

/// `1. Title. Author, date. nacre:edition:... “quote”`
pub(super) fn numbered(citations: &[Citation]) -> Vec<String> {
    let line = |(number, citation): (usize, &Citation)| {
        let cited = passage::reference(&citation.of, &citation.cited);
        format!("{number}. {cited}")
    };
    (1..).zip(citations).map(line).collect()
}

fn check_media_type(text: &str) -> Result<(), ApiError> {
    let part = |part: &str| {
        let good = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
        (1..=100).contains(&part.len()) && part.bytes().all(good)
    };
    match text.split_once('/') {
        Some((kind, rest)) if part(kind) && part(rest) => Ok(()),
        Some(_) | None => {
            let message = format!("\"{}\" is not a media type", text.escape_debug());
            Err(ApiError::new(ErrorKind::InvalidRequest, message).hint("such as text/markdown"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_have_two_parts() {
        for good in ["text/markdown", "image/svg+xml", "application/vnd.ms-excel"] {
            assert!(check_media_type(good).is_ok(), "{good}");
        }
        for bad in ["", "text", "text/", "/x", "text/html; x=y", "a/b/c", "text/\nx"] {
            assert!(check_media_type(bad).is_err(), "{bad}");
        }
    }
}
