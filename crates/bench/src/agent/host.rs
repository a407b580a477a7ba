//! Conversations: the loop with its brain on the host, and a long conversation that is opened again.

use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use http_body_util::BodyExt;
use hyper::Method;
use nacre_wire::client::{Client, empty};
use nacre_wire::conductor::{ConversationInfo, CreateConversation, SendMessage, Sent};
use serde_json::Value;

use super::Rounds;
use super::computer::Computer;
use super::model::{Clock, LOOPS, TALKS};
use crate::report::Row;
use crate::samples::Samples;

const STEP_MS: f64 = 10.0;
const RESUME_MS: f64 = 100.0;
const CONVERSATIONS: &str = "/admin/sandboxes/conductor/conversations";

pub(super) async fn turn_of_steps(
    computer: &Computer<'_>,
    clock: &Clock,
    rounds: Rounds,
) -> Result<Vec<Row>> {
    eprintln!("a turn of {} steps from the host", rounds.steps);
    let client = computer.client();
    let conversation = create(&client).await?;
    clock.take();
    turn(&client, &conversation, LOOPS).await?;
    let steps = clock.take();
    let row = |percent: u32| {
        let metric = format!("a step from the host: added to the model's time, p{percent}");
        Row::lower(metric, "ms", steps.percentile(percent)).samples(steps.count())
    };
    Ok(vec![row(50).target(STEP_MS), row(99)])
}

/// By a gateway that has just started, up to its last event.
pub(super) async fn resume(computer: &Computer<'_>, rounds: Rounds) -> Result<Vec<Row>> {
    eprintln!("a conversation of {} events, opened again {} times", rounds.events, rounds.resumes);
    let client = computer.client();
    let conversation = create(&client).await?;
    let mut last = 0;
    while last < rounds.events {
        last = turn(&client, &conversation, TALKS).await?;
    }
    let (mut took, mut size) = (Samples::default(), 0);
    for _ in 0..rounds.resumes {
        computer.stop().await?;
        computer.up().await?;
        let client = computer.client();
        let began = Instant::now();
        let events = events(&client, &conversation).await?;
        took.push_ms(began.elapsed());
        ensure!(events.contains(&format!("\"seq\":{last},")), "event {last} is missing");
        size = events.len() / 1000;
    }
    let metric =
        format!("a conversation of {last} events ({size} KB) opened again, to its last event, p50");
    Ok(vec![Row::lower(metric, "ms", took.median()).target(RESUME_MS).samples(took.count())])
}

async fn create(client: &Client) -> Result<String> {
    let made: ConversationInfo =
        client.post_json(CONVERSATIONS, &CreateConversation::default()).await?;
    Ok(made.id)
}

/// Returns when it has ended, with the number of its last event.
async fn turn(client: &Client, conversation: &str, text: &str) -> Result<u64> {
    let place = format!("{CONVERSATIONS}/{conversation}");
    let message = SendMessage { text: text.to_owned() };
    let sent: Sent = client.post_json(&format!("{place}/messages"), &message).await?;
    let path = format!("{place}/events?after={}", sent.seq);
    let mut body = client.send(client.request(Method::GET, &path, empty())?).await?.into_body();
    let mut text = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            text.extend_from_slice(&data);
        }
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            if let Some(seq) = ended(&line)? {
                return Ok(seq);
            }
        }
    }
    bail!("the events ended before the turn did")
}

fn ended(line: &[u8]) -> Result<Option<u64>> {
    let Some(data) = line.strip_prefix(b"data:") else { return Ok(None) };
    let event: Value = serde_json::from_slice(data)?;
    if event["sessionUpdate"] != "ended" {
        return Ok(None);
    }
    ensure!(event["how"]["reason"] == "max_steps", "the turn ended otherwise: {event}");
    Ok(Some(event["seq"].as_u64().context("an event without a number")?))
}

async fn events(client: &Client, conversation: &str) -> Result<String> {
    let path = format!("{CONVERSATIONS}/{conversation}/events?after=0&follow=false");
    let response = client.send(client.request(Method::GET, &path, empty())?).await?;
    let body = response.into_body().collect().await?.to_bytes();
    Ok(String::from_utf8(body.to_vec())?)
}
