//! Memory, knowledge and publications, below `/admin/sandboxes`.

use utoipa::openapi::{HttpMethod, Required};

use super::call::Call;
use crate::knowledge::{
    AddFact, ChangeFact, CitationGraph, CitationInfo, CiteRequest, DocumentList, EditionInfo,
    EditionList, EditionView, FactInfo, FactList, KnowledgeStatus, PublishRequest, Recall,
    SearchAnswer, VerifyReport,
};

pub(super) fn calls() -> Vec<Call> {
    let memory = MEMORY.iter().flat_map(memory).map(|call| call.tag("memory"));
    let knowledge = knowledge().into_iter().map(|call| call.tag("knowledge"));
    let publications = publications().into_iter().map(|call| call.tag("publications"));
    let writer = writer().into_iter().map(|call| call.tag("writer"));
    memory.chain(knowledge).chain(publications).chain(writer).collect()
}

/// Where memory is, and what a generated client calls its calls there.
struct Memory {
    all: &'static str,
    search: &'static str,
    one: &'static str,
    ids: [&'static str; 5],
}

const MEMORY: [Memory; 2] = [
    Memory {
        all: "/admin/sandboxes/memory",
        search: "/admin/sandboxes/memory/search",
        one: "/admin/sandboxes/memory/{id}",
        ids: ["list_facts", "add_fact", "recall_facts", "change_fact", "delete_fact"],
    },
    Memory {
        all: "/conductor/memory",
        search: "/conductor/memory/search",
        one: "/conductor/memory/{id}",
        ids: [
            "list_facts_inside",
            "add_fact_inside",
            "recall_facts_inside",
            "change_fact_inside",
            "delete_fact_inside",
        ],
    },
];

fn memory(
    Memory { all, search, one, ids: [list, add, recall, change, delete] }: &Memory,
) -> Vec<Call> {
    vec![
        Call::new(HttpMethod::Get, all, list, "What is remembered")
            .query::<i64>("before", "Only what is older than this fact")
            .query::<String>("tag", "Only with this tag")
            .query::<u32>("limit", "How many; 50 unless told, 1000 at most")
            .gives::<FactList>("200", "Newest first"),
        Call::new(HttpMethod::Post, all, add, "Remember a fact")
            .takes::<AddFact>(Required::True)
            .gives::<FactInfo>("201", "Remembered; the same text twice is one fact"),
        Call::new(HttpMethod::Get, search, recall, "Recall by word and by meaning")
            .required::<String>("q", "What about")
            .query::<u32>("limit", "How many; 10 unless told, 100 at most")
            .gives::<Recall>("200", "Best first"),
        Call::new(HttpMethod::Put, one, change, "Change a fact")
            .takes::<ChangeFact>(Required::True)
            .gives::<FactInfo>("200", "As it is now"),
        Call::new(HttpMethod::Delete, one, delete, "Forget a fact")
            .gives_nothing("204", "Gone, also from the disk"),
    ]
}

fn knowledge() -> Vec<Call> {
    vec![
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/knowledge",
            "knowledge_status",
            "What is indexed, and by what model",
        )
        .gives::<KnowledgeStatus>("200", "As it is now"),
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/knowledge/search",
            "knowledge_search",
            "Find passages by word and by meaning",
        )
        .required::<String>("q", "What about")
        .query::<String>("in", "Only in this sandbox, or `publications`")
        .query::<u32>("limit", "How many; 10 unless told, 100 at most")
        .gives::<SearchAnswer>("200", "Best first"),
    ]
}

fn publications() -> Vec<Call> {
    let all = "/admin/sandboxes/publications";
    vec![
        Call::new(HttpMethod::Get, all, "list_publications", "What was published")
            .query::<String>("document", "Only editions of this document")
            .query::<u64>("before", "Only what is older than this number")
            .query::<u32>("limit", "How many; 50 unless told, 1000 at most")
            .gives::<EditionList>("200", "Newest first"),
        Call::new(HttpMethod::Post, all, "publish", "Publish an edition of a document")
            .takes::<PublishRequest>(Required::True)
            .gives::<EditionInfo>("200", "This very edition was there already")
            .gives::<EditionInfo>("201", "Published"),
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/publications/verify",
            "verify_publications",
            "Check that nothing published has changed",
        )
        .gives::<VerifyReport>("200", "What was found"),
        Call::new(
            HttpMethod::Post,
            "/admin/sandboxes/publications/cite",
            "cite",
            "Check a citation and write it",
        )
        .takes::<CiteRequest>(Required::True)
        .gives::<CitationInfo>("200", "It holds"),
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/publications/{edition}",
            "show_publication",
            "An edition by address, by the beginning of its hash, or the latest of a document",
        )
        .gives::<EditionView>("200", "Checked to be what was published"),
    ]
}

/// The same as `/writer/*` of a role, for programs.
fn writer() -> Vec<Call> {
    vec![
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/writer",
            "writer",
            "The newest publications; a page for who navigates there",
        )
        .gives::<EditionList>("200", "Newest first"),
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/writer/documents",
            "writer_documents",
            "The documents that are indexed",
        )
        .query::<String>("after", "Only what comes after this path")
        .gives::<DocumentList>("200", "By path"),
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/writer/documents/{path}",
            "writer_document",
            "A document as it is now",
        )
        .gives_bytes("200", "Its text", "text/plain"),
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/writer/editions",
            "writer_editions",
            "What was published",
        )
        .query::<u64>("before", "Only what is older than this number")
        .gives::<EditionList>("200", "Newest first"),
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/writer/editions/{edition}",
            "writer_edition",
            "An edition and what surrounds it",
        )
        .gives::<EditionView>("200", "Checked to be what was published"),
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/writer/editions/{edition}/content",
            "writer_edition_content",
            "The bytes that were published",
        )
        .gives_bytes("200", "They never change", "application/octet-stream"),
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/writer/editions/{edition}/manifest",
            "writer_edition_manifest",
            "The manifest, byte for byte as it is hashed",
        )
        .gives_bytes("200", "It never changes", "application/json"),
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/writer/editions/{edition}/references",
            "writer_edition_references",
            "What it cites, as a numbered list",
        )
        .gives_bytes("200", "Markdown", "text/markdown"),
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/writer/graph",
            "writer_graph",
            "Who cites whom",
        )
        .gives::<CitationGraph>("200", "In the order of publication"),
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/writer/search",
            "writer_search",
            "Find passages by word and by meaning",
        )
        .required::<String>("q", "What about")
        .gives::<SearchAnswer>("200", "Best first"),
    ]
}
