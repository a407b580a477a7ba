//! What the library says, as the wire carries it.

use std::collections::BTreeMap;

use nacre_knowledge as known;
use nacre_knowledge::edition::Place;
use nacre_wire::knowledge::{
    CitationInfo, EditionInfo, FactInfo, KnowledgeSource, KnowledgeStatus, RecalledFact, SearchHit,
    VerifyReport,
};

use super::PUBLICATIONS;
use super::follow::Followed;

pub(super) fn fact(fact: known::Fact) -> FactInfo {
    let known::Fact { id, text, source, tags, created_at, changed_at } = fact;
    FactInfo { id, text, source, tags, created_at, changed_at }
}

pub(super) fn recalled(known::Recalled { fact, found }: known::Recalled) -> RecalledFact {
    let known::Found { score, by_word, by_meaning } = found;
    RecalledFact { fact: self::fact(fact), score, by_word, by_meaning }
}

pub(super) fn hit(hit: known::Hit, name_of: impl Fn(&str) -> String) -> SearchHit {
    let known::Found { score, by_word, by_meaning } = hit.found;
    SearchHit {
        source: name_of(&hit.source),
        path: hit.path,
        title: hit.title,
        first_line: hit.first_line,
        last_line: hit.last_line,
        headings: hit.headings,
        snippet: hit.snippet,
        score,
        by_word,
        by_meaning,
    }
}

/// A sandbox that is followed is named even when it has no document.
pub(super) fn status(
    status: known::Status,
    followed: &BTreeMap<String, Followed>,
    name_of: impl Fn(&str) -> String,
) -> KnowledgeStatus {
    let mut counts: BTreeMap<String, u64> = status.sources.into_iter().collect();
    for id in followed.keys() {
        counts.entry(id.clone()).or_insert(0);
    }
    let sources = counts.into_iter().map(|(id, documents)| {
        let state = followed.get(&id);
        KnowledgeSource {
            name: name_of(&id),
            documents,
            current: (id != PUBLICATIONS).then(|| state.is_some_and(|state| state.current)),
            problem: state.and_then(|state| state.problem.clone()),
        }
    });
    KnowledgeStatus {
        documents: status.documents,
        chunks: status.chunks,
        waiting: status.waiting,
        facts: status.facts,
        editions: status.editions,
        model: status.model,
        sources: sources.collect(),
    }
}

pub(super) fn edition(info: &known::EditionInfo) -> EditionInfo {
    let manifest = &info.manifest;
    let place = |of: &known::edition::CitationOf| {
        Place { edition: of.edition.clone(), lines: of.lines }.to_string()
    };
    EditionInfo {
        address: info.address.to_string(),
        number: info.number,
        title: manifest.title.clone(),
        author: manifest.author.clone(),
        date: manifest.date.clone(),
        document: manifest.document.clone(),
        media_type: manifest.media_type.clone(),
        bytes: manifest.bytes,
        content: manifest.content.clone(),
        previous: manifest.previous.as_ref().map(ToString::to_string),
        citations: manifest.citations.iter().map(place).collect(),
        new: None,
    }
}

pub(super) fn citation(citation: known::Citation) -> CitationInfo {
    let known::Citation { of, mark, note, reference, .. } = citation;
    let place = Place { edition: of.edition, lines: of.lines }.to_string();
    CitationInfo { place, quote: of.quote, mark, note, reference }
}

pub(super) fn verified(verified: known::Verified) -> VerifyReport {
    let known::Verified { editions, head, problems } = verified;
    VerifyReport { editions, head, problems }
}
