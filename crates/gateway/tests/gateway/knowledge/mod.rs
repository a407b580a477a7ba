//! Documents are found as they change; facts, editions and citations over the API; the agent's tools.

mod embeddings;
mod tools;
pub(crate) mod workspace;

use std::time::Duration;

use http::StatusCode;
use nacre_gateway::{EmbeddingModel, KnowledgeConfig};
use nacre_wire::ErrorKind;
use nacre_wire::client::Error;
use nacre_wire::conductor::{PlanInfo, PlanList, PlanSource};
use nacre_wire::knowledge::{
    AddFact, CitationGraph, CitationInfo, CiteRequest, EditionInfo, EditionList, EditionView,
    FactInfo, FactList, KnowledgeStatus, PublishRequest, Recall, SearchAnswer, VerifyReport,
};
use nacre_wire::path::text_to_query;

use crate::host::Host;
use workspace::Workspace;

async fn start(workspace: &Workspace) -> Host {
    Host::start_in_as(workspace.world(), |config| {
        config.knowledge = KnowledgeConfig {
            index: true,
            exclude: vec!["private".to_owned()],
            gitignore: true,
            ..KnowledgeConfig::default()
        };
    })
    .await
}

async fn search(host: &Host, question: &str) -> SearchAnswer {
    let path = format!("/admin/sandboxes/knowledge/search?q={}", text_to_query(question));
    host.admin().get_json(&path).await.unwrap()
}

fn places(found: &SearchAnswer) -> Vec<String> {
    let place = |hit: &nacre_wire::knowledge::SearchHit| {
        format!("{}:{}:{}-{}", hit.source, hit.path, hit.first_line, hit.last_line)
    };
    found.hits.iter().map(place).collect()
}

async fn status(host: &Host) -> KnowledgeStatus {
    host.admin().get_json("/admin/sandboxes/knowledge").await.unwrap()
}

/// There is no event for what only the gateway knows.
pub(crate) async fn until(host: &Host, question: &str, expected: &[&str]) {
    let mut last = Vec::new();
    for _ in 0..3000 {
        let mut found = search(host, question).await;
        // Made-up words are all alike to who knows none of them.
        found.hits.retain(|hit| hit.by_word);
        last = places(&found);
        if last == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{question}: expected {expected:?}, and it is {last:?}");
}

async fn until_current(host: &Host) {
    for _ in 0..3000 {
        let status = status(host).await;
        if status.sources.iter().any(|source| source.current == Some(true)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never looked at everything: {:?}", status(host).await);
}

#[tokio::test]
async fn a_document_is_found_while_it_is_there_and_as_it_is() {
    let workspace = Workspace::new();
    workspace.place("notes/first.md", "# Shells\n\nAbout quahogs and whelks.\n");
    workspace.place("node_modules/x/readme.md", "quahogs of somebody else");
    workspace.place("private/diary.md", "quahogs in confidence");
    workspace.place("picture.md", b"\0quahogs".to_vec());
    workspace.place("main.rs", "quahogs in code");
    workspace.place("long.md", vec![b'q'; (1 << 20) + 1]);
    let host = start(&workspace).await;
    until(&host, "quahogs", &["live:notes/first.md:1-3"]).await;
    until_current(&host).await;

    workspace.write("second.txt", "A periwinkle.\n");
    until(&host, "periwinkle", &["live:second.txt:1-1"]).await;
    workspace.write("second.txt", "\nA limpet now.\n");
    until(&host, "limpet", &["live:second.txt:2-2"]).await;
    until(&host, "periwinkle", &[]).await;
    workspace.remove("notes");
    until(&host, "quahogs", &[]).await;

    // Events that got lost are made up for.
    workspace.place("third.md", "A nautilus.\n");
    workspace.lose_events();
    until(&host, "nautilus", &["live:third.md:1-1"]).await;
    let status = status(&host).await;
    assert_eq!((status.documents, status.waiting), (2, 0));
}

#[tokio::test]
async fn what_git_ignores_is_not_found() {
    let workspace = Workspace::new();
    workspace.place(".gitignore", "/public/\n");
    workspace.place("public/page.md", "About quahogs, made.\n");
    workspace.place("page.md", "About quahogs, written.\n");
    workspace.place("site/made/page.md", "About quahogs, made too.\n");
    let host = start(&workspace).await;
    until(&host, "quahogs", &["live:page.md:1-1", "live:site/made/page.md:1-1"]).await;
    // A rule that comes later holds for what is there already, and one that goes lets it in again.
    workspace.write("site/.gitignore", "made\n");
    until(&host, "quahogs", &["live:page.md:1-1"]).await;
    workspace.write("site/made/more.md", "More quahogs.\n");
    workspace.write("other.md", "No whelks.\n");
    until(&host, "whelks", &["live:other.md:1-1"]).await;
    until(&host, "quahogs", &["live:page.md:1-1"]).await;
    workspace.remove("site");
    workspace.write(".gitignore", "");
    until(&host, "made", &["live:public/page.md:1-1"]).await;
}

#[tokio::test]
async fn after_a_restart_only_what_changed_is_read_again() {
    let workspace = Workspace::new();
    for n in 0..20 {
        workspace.place(&format!("{n}.md"), format!("document word{n}q\n"));
    }
    let mut host = start(&workspace).await;
    until_current(&host).await;
    assert_eq!(workspace.reads(), 20);
    host.kill().await;
    workspace.place("3.md", "document changedq\n");
    workspace.remove("4.md");
    host.start_again().await;
    until(&host, "changedq", &["live:3.md:1-1"]).await;
    until(&host, "word4q", &[]).await;
    until(&host, "word5q", &["live:5.md:1-1"]).await;
    assert_eq!(workspace.reads(), 21);
}

#[tokio::test]
async fn what_a_destroyed_sandbox_had_is_forgotten() {
    let workspace = Workspace::new();
    workspace.place("a.md", "barnacles\n");
    let host = start(&workspace).await;
    until(&host, "barnacles", &["live:a.md:1-1"]).await;
    host.make_dev().await;
    until(&host, "barnacles", &["live:a.md:1-1", "dev:a.md:1-1"]).await;
    host.admin().delete("/admin/sandboxes/dev").await.unwrap();
    until(&host, "barnacles", &["live:a.md:1-1"]).await;
}

#[tokio::test]
async fn without_an_answer_of_the_provider_words_still_find() {
    let workspace = Workspace::new();
    workspace.place("a.md", "barnacles\n");
    let host = Host::start_in_as(workspace.world(), |config| {
        let (provider, model) = ("nobody".to_owned(), "none".to_owned());
        let embeddings = Some(EmbeddingModel { provider, model });
        config.knowledge = KnowledgeConfig { index: true, embeddings, ..Default::default() };
    })
    .await;
    until(&host, "barnacles", &["live:a.md:1-1"]).await;
    let found = search(&host, "barnacles").await;
    let note = found.note.unwrap();
    assert!(note.starts_with("found by word only: nobody/none"), "{note}");
    assert!(found.hits[0].by_word && !found.hits[0].by_meaning);
    let status = status(&host).await;
    assert_eq!((status.model.as_str(), status.waiting), ("nobody/none", 1));
}

#[tokio::test]
async fn plans_of_the_workspace_come_before_those_of_the_agent() {
    let workspace = Workspace::new();
    workspace.place("plans/tidy.md", "---\ndescription: Tidy up\n---\n## Look\n## Sweep\n");
    workspace.place("plans/broken.md", "## No head\n");
    let host = start(&workspace).await;
    let plans = "/admin/sandboxes/conductor/plans";
    let list: PlanList = host.admin().get_json(plans).await.unwrap();
    let tidy = PlanInfo {
        name: "tidy".to_owned(),
        description: "Tidy up".to_owned(),
        steps: vec!["Look".to_owned(), "Sweep".to_owned()],
        source: PlanSource::Workspace,
        path: Some("plans/tidy.md".to_owned()),
    };
    assert_eq!(list.plans[0], tidy);
    assert!(list.plans[1..].iter().all(|plan| plan.source == PlanSource::Builtin));
    assert_eq!(list.malformed[0].path, "plans/broken.md");
}

#[tokio::test]
async fn the_owner_keeps_changes_and_deletes_facts() {
    let mut host = Host::start().await;
    let admin = host.admin();
    let path = "/admin/sandboxes/memory";
    let told = AddFact { text: "The cat is called Kiwi.".into(), tags: vec!["Pets".into()] };
    let fact: FactInfo = admin.post_json(path, &told).await.unwrap();
    assert_eq!((fact.source.as_str(), fact.tags.as_slice()), ("owner", &["pets".to_owned()][..]));
    host.kill().await;
    host.start_again().await;
    let admin = host.admin();
    let recalled: Recall = admin.get_json(&format!("{path}/search?q=kitten")).await.unwrap();
    assert_eq!(recalled.facts.first().map(|found| found.fact.id), Some(fact.id));
    let list: FactList = admin.get_json(&format!("{path}?tag=pets")).await.unwrap();
    assert_eq!(list.facts, std::slice::from_ref(&fact));
    admin.delete(&format!("{path}/{}", fact.id)).await.unwrap();
    let gone = admin.delete(&format!("{path}/{}", fact.id)).await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
    let empty = AddFact { text: " ".into(), tags: Vec::new() };
    let refused = admin.post_json::<FactInfo>(path, &empty).await.unwrap_err();
    assert_eq!(refused.to_string(), "there is nothing to remember");
}

/// A page of a sandbox has the same origin and sends the same cookie.
#[tokio::test]
async fn no_page_changes_memory_or_publishes() {
    let host = Host::start().await;
    let cookie = host.sign_in().await;
    let origin = host.origin();
    let headers = [("cookie", cookie.as_str()), ("origin", origin.as_str())];
    let calls =
        [("POST", "memory"), ("PUT", "memory/1"), ("DELETE", "memory/1"), ("POST", "publications")];
    for (method, path) in calls {
        let answer = host.request(method, &format!("/admin/sandboxes/{path}"), &headers).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{method} {path}");
    }
    let read = host.get("/admin/sandboxes/memory", &headers).await;
    assert_eq!(read.status, StatusCode::OK);
}

fn paper(path: &str, text: Option<&str>) -> PublishRequest {
    PublishRequest {
        path: path.to_owned(),
        title: format!("About <{}>", path.trim_start_matches("/workspace/")),
        sandbox: None,
        text: text.map(str::to_owned),
        media_type: None,
    }
}

async fn publish(host: &Host, request: &PublishRequest) -> Result<EditionInfo, Error> {
    host.admin().post_json("/admin/sandboxes/publications", request).await
}

#[tokio::test]
async fn what_is_published_is_cited_shown_and_verified() {
    let workspace = Workspace::new();
    workspace.place("paper.md", "# On shells\n\nA shell grows <b>layer</b>\nby layer.\n");
    let host = start(&workspace).await;
    let admin = host.admin();
    let first = publish(&host, &paper("paper.md", None)).await.unwrap();
    assert_eq!((first.author.as_str(), first.new), ("local", Some(true)));
    let again = publish(&host, &paper("/workspace/paper.md", None)).await.unwrap();
    assert_eq!((again.address.as_str(), again.new), (first.address.as_str(), Some(false)));

    let cite = "/admin/sandboxes/publications/cite";
    let wrong =
        CiteRequest { edition: first.address.clone(), quote: Some("brick by brick".into()) };
    let refused = admin.post_json::<CitationInfo>(cite, &wrong).await.unwrap_err();
    assert!(refused.to_string().contains("does not stand in"), "{refused}");
    let right = CiteRequest { quote: Some("grows <b>layer</b> by".into()), ..wrong };
    let cited: CitationInfo = admin.post_json(cite, &right).await.unwrap();
    assert_eq!(cited.place, format!("{}#L3-L4", first.address));

    let text = format!("As they say{}.\n\n{}\n", cited.mark, cited.note);
    let second = publish(&host, &paper("reply.md", Some(&text))).await.unwrap();
    assert_eq!(second.citations, std::slice::from_ref(&cited.place));
    let invented = text.replace("grows", "shrinks");
    assert!(publish(&host, &paper("reply.md", Some(&invented))).await.is_err());
    assert!(publish(&host, &paper("../x.md", Some("x"))).await.is_err());

    let below = publish(&host, &paper("notes/third.md", Some("Third.\n"))).await.unwrap();
    let view: EditionView =
        admin.get_json("/admin/sandboxes/publications/notes%2Fthird.md").await.unwrap();
    assert_eq!((view.edition.address, view.text.as_deref()), (below.address, Some("Third.\n")));
    let view: EditionView = admin.get_json("/admin/sandboxes/publications/paper.md").await.unwrap();
    assert_eq!(view.cited_by, std::slice::from_ref(&second.address));
    let report: VerifyReport =
        admin.get_json("/admin/sandboxes/publications/verify").await.unwrap();
    assert_eq!((report.editions, report.problems.len()), (3, 0));
    let found = search(&host, "grows layer").await;
    assert!(found.hits.iter().any(|hit| hit.path == first.address), "{found:?}");
    pages(&host, &first, &second).await;
}

/// As people see it, and as programs do.
async fn pages(host: &Host, first: &EditionInfo, second: &EditionInfo) {
    let cookie = host.sign_in().await;
    let writer = "/admin/sandboxes/writer";
    let hash = |edition: &EditionInfo| edition.address.rsplit(':').next().unwrap().to_owned();
    let (first_hash, second_hash) = (hash(first), hash(second));
    let page = async |path: &str| {
        let headers = [("cookie", cookie.as_str()), ("accept", "text/html")];
        let answer = host.get(&format!("{writer}{path}"), &headers).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}");
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("script"), "{policy}");
        let text = answer.text().to_owned();
        assert!(!text.contains("<b>layer") && !text.contains("<script"), "{text}");
        text
    };
    assert!(page("/").await.contains("About &lt;paper.md&gt;"));
    page("/documents").await;
    page("/editions").await;
    assert!(page("/graph").await.contains(&second_hash));
    assert!(page("/search?q=layer").await.contains(&first_hash));
    assert!(page("/documents/paper.md").await.contains("&lt;b&gt;layer&lt;/b&gt;"));
    let shown = page(&format!("/editions/{first_hash}")).await;
    assert!(shown.contains("id=\"L4\"") && shown.contains(&second_hash), "{shown}");

    let data = async |path: &str| {
        host.get(&format!("{writer}{path}"), &[("cookie", cookie.as_str())]).await
    };
    let list: EditionList = serde_json::from_str(data("/editions").await.text()).unwrap();
    assert_eq!(list.editions.len(), 3);
    let graph: CitationGraph = serde_json::from_str(data("/graph").await.text()).unwrap();
    assert_eq!((&graph.edges[0].citing, &graph.edges[0].cited), (&second.address, &first.address));
    let content = data(&format!("/editions/{first_hash}/content")).await;
    assert!(content.headers["cache-control"].to_str().unwrap().contains("immutable"));
    assert_eq!(content.headers["content-type"], "text/markdown; charset=utf-8");
    assert!(content.headers["content-security-policy"].to_str().unwrap().contains("sandbox"));
    assert_eq!(content.text(), "# On shells\n\nA shell grows <b>layer</b>\nby layer.\n");
    let tag = content.headers["etag"].to_str().unwrap().to_owned();
    let headers = [("cookie", cookie.as_str()), ("if-none-match", tag.as_str())];
    let again = host.get(&format!("{writer}/editions/{first_hash}/content"), &headers).await;
    assert_eq!(again.status, StatusCode::NOT_MODIFIED);
    let references = data(&format!("/editions/{second_hash}/references")).await;
    let references = references.text();
    assert!(references.starts_with("1. About <paper.md>. local, "), "{references}");
    assert!(references.contains(&format!("{}#L3-L4", first.address)), "{references}");
    assert_eq!(data("/editions/nothing/content").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(data("/documents/private/diary.md").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_edition_names_the_owners_did() {
    let net = nacre_atproto::testing::Net::start().await.unwrap();
    let host = Host::owned(&net).await;
    let info = publish(&host, &paper("a.md", Some("# A\n"))).await.unwrap();
    assert_eq!(info.author, nacre_atproto::testing::ALICE);
    let path = format!("/admin/sandboxes/publications/{}", info.address);
    let view: EditionView = host.admin().get_json(&path).await.unwrap();
    assert_eq!(view.edition.author, nacre_atproto::testing::ALICE);
}
