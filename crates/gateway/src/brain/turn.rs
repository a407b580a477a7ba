//! One turn: everything it needs is put together first, so that what cannot begin is refused before
//! anything is written down.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nacre_agent::body::{Body, Remote};
use nacre_agent::events::Update;
use nacre_agent::mcp::{Mcp, Servers};
use nacre_agent::model::{Format, Model, Pieces, Reply, Request, Served, Service};
use nacre_agent::tools::{BodyTools, Planner, Toolbox};
use nacre_agent::{Agent, Limits, prompt};
use nacre_wire::client::Client;
use nacre_wire::{ApiError, ErrorKind};
use tokio_util::sync::CancellationToken;

use super::acting::{Acting, By, Doing, Keeper, Recorded};
use super::aside;
use super::conversation::{Conversation, Paid, mode};
use super::index::Meta;
use super::memory::Memory;
use super::permission::Owner;
use super::policy;
use super::whereabouts::Whereabouts;
use crate::provider::{Kind, Meter, longest};
use crate::routes::Role;
use crate::sandboxes::{Sandbox, Sandboxes};
use crate::secret::Secret;

/// How long a sandbox may take to say what is in its workspace.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is not settled by then is told with the next step, or not at all.
const SETTLES_IN_MS: u32 = 100;

/// Where one turn acts, for whoever makes tools for it.
pub(crate) struct Place {
    pub(crate) conversation: String,
    pub(crate) role: Role,
    /// By id: a role may move while the turn goes on where it began.
    pub(crate) sandbox: String,
    /// What people call it.
    name: String,
    /// Its supervisor.
    pub(crate) client: Client,
    pub(crate) body: Arc<dyn Body>,
}

/// Makes toolboxes for a turn.
pub(crate) type Extra = Arc<dyn Fn(&Place) -> Vec<Arc<dyn Toolbox>> + Send + Sync>;

pub(super) struct Prepared {
    agent: Agent,
    begins: Update,
}

pub(super) async fn prepare(
    conversation: &mut Conversation,
    turn: u64,
    doing: Doing,
) -> Result<Prepared, ApiError> {
    let place = place(conversation, turn, &doing)?;
    let name = chosen_model(conversation)?;
    let model = model(conversation, &name).await?;
    let system = tokio::time::timeout(PATIENCE, prompt::system(&*place.body)).await;
    let mut system = system.map_err(|_| {
        ApiError::new(ErrorKind::TimedOut, format!("{} does not answer", place.role.as_str()))
            .hint("nacre status shows how it is")
    })?;
    system.push_str(&prompt::place(place.role.as_str(), &place.name));
    let aside = conversation.brain.index.aside(&conversation.meta.id);
    // What it does not get back in this time can still be read, by its path.
    let remote = Remote::new(place.client.clone(), place.conversation.as_str());
    let _ = tokio::time::timeout(PATIENCE, aside.bring_back(&remote)).await;
    let scratch = aside::scratch(&conversation.meta.id);
    let toolboxes = toolboxes(conversation, &place, turn, doing, &scratch)?;
    let begins = Update::TurnBegins {
        turn,
        role: place.role.as_str().to_owned(),
        sandbox: place.sandbox.clone(),
        mode: conversation.meta.mode.as_str().to_owned(),
        model: name,
    };
    let config = &conversation.brain.config;
    let question = conversation.question.clone();
    let agent = Agent {
        model,
        toolboxes,
        permission: Arc::new(Owner { question, mode: conversation.mode.subscribe() }),
        system,
        mode: mode(conversation.meta.mode),
        limits: Limits { steps: config.steps, time: config.time },
        scratch,
        body: place.body,
    };
    Ok(Prepared { agent, begins })
}

/// To its end, whatever becomes of whoever asked for it. The memory is given back unless it could not be
/// written: what is on disk then says more than we do.
pub(super) async fn run(
    prepared: Prepared,
    mut memory: Memory,
    text: String,
    cancel: CancellationToken,
) -> Option<Memory> {
    let Prepared { agent, begins } = prepared;
    let ended = match memory.keep(begins) {
        Ok(()) => {
            let Memory { session, journal, .. } = &mut memory;
            agent.turn(session, journal, &text, &cancel).await
        }
        Err(error) => Err(error),
    };
    match ended {
        Ok(_) => Some(memory),
        Err(error) => {
            tracing::error!(%error, "a conversation cannot be written down");
            if let Some(accepted) = memory.journal.accepted.take() {
                let _ = accepted.send(Err(ApiError::io("the conversation", &error)));
            }
            None
        }
    }
}

fn place(conversation: &Conversation, turn: u64, doing: &Doing) -> Result<Place, ApiError> {
    let chosen = conversation.meta.role.as_deref();
    let (role, sandbox) = acts_on(&conversation.brain.sandboxes, chosen)?;
    let (client, id) = (sandbox.client(), conversation.meta.id.clone());
    let aside = conversation.brain.index.aside(&id);
    let body = Arc::new(Acting::new(client.clone(), &id, turn, doing.clone(), aside));
    let name = sandbox.name.clone();
    Ok(Place { conversation: id, role, sandbox: sandbox.id.to_string(), name, client, body })
}

/// Where a conversation with this choice acts, if that runs.
pub(super) fn acts_on(
    sandboxes: &Sandboxes,
    chosen: Option<&str>,
) -> Result<(Role, Arc<Sandbox>), ApiError> {
    let role = policy::role(chosen, sandboxes.by_role(Role::Dev).is_some());
    let Some(sandbox) = sandboxes.by_role(role) else {
        let message = format!("there is no {} sandbox", role.as_str());
        return Err(ApiError::new(ErrorKind::Unavailable, message).hint(match role {
            Role::Dev => "nacre dev create makes it, or choose live",
            Role::Live => "nacre sandbox create live --start",
        }));
    };
    sandbox.require_running()?;
    Ok((role, sandbox))
}

fn toolboxes(
    conversation: &Conversation,
    place: &Place,
    turn: u64,
    doing: Doing,
    scratch: &str,
) -> Result<Vec<Arc<dyn Toolbox>>, ApiError> {
    let keeper = Keeper {
        client: place.client.clone(),
        conversation: place.conversation.clone(),
        sandbox: place.sandbox.clone(),
        turn,
        doing,
    };
    let keeper = Arc::new(keeper);
    let sandboxes = conversation.brain.sandboxes.clone();
    let own = Arc::new(BodyTools::new(place.body.clone()));
    let mut toolboxes: Vec<Arc<dyn Toolbox>> = vec![
        Arc::new(Recorded::new(own, By::Call, keeper.clone())),
        Arc::new(Planner),
        Arc::new(Whereabouts::new(sandboxes, &place.sandbox, place.role)),
    ];
    // A program is in the sandbox and may change what is there; an address is elsewhere.
    let servers = conversation.brain.config.mcp.clone();
    let (programs, addresses): (Servers, Servers) =
        servers.into_iter().partition(|(_, server)| server.url.is_none());
    let mcp = |servers: &Servers| {
        Mcp::new(servers, &place.body, scratch)
            .map_err(|why| ApiError::new(ErrorKind::InvalidRequest, why))
    };
    if !programs.is_empty() {
        let programs = Arc::new(mcp(&programs)?);
        toolboxes.push(Arc::new(Recorded::new(programs, By::Program, keeper)));
    }
    if !addresses.is_empty() {
        toolboxes.push(Arc::new(mcp(&addresses)?));
    }
    toolboxes.extend(conversation.brain.extra.iter().flat_map(|extra| extra(place)));
    Ok(toolboxes)
}

fn chosen_model(conversation: &Conversation) -> Result<String, ApiError> {
    let chosen = conversation.meta.model.clone().or(conversation.brain.config.model.clone());
    chosen.ok_or_else(|| {
        ApiError::new(ErrorKind::InvalidRequest, "no model is chosen for this conversation").hint(
            "write [agent] model = \"provider/model\" in nacre.toml, or name one with --model",
        )
    })
}

async fn model(conversation: &mut Conversation, name: &str) -> Result<Arc<dyn Model>, ApiError> {
    let (provider, model) = policy::model(name)?;
    let models = conversation.brain.models.clone();
    let kind = models.kind_of(provider)?;
    let good = |paid: &Paid| paid.model == name && paid.allowance.is_good();
    let paid = match conversation.paid.take().filter(good) {
        Some(paid) => paid,
        None => {
            let (id, budget) = (&conversation.meta.id, conversation.brain.config.budget);
            let allowance = models.allow_conversation(id, provider, model, budget).await?;
            Paid { model: name.to_owned(), allowance }
        }
    };
    let budget = conversation.brain.config.budget;
    let reply = models.reply_of_conversation(provider, model, &paid.allowance, budget);
    let longest = longest(kind, reply);
    let service = Service { longest, ..service(kind, provider, model, &paid.allowance.secret) };
    let window = models.window(provider, model).or(conversation.brain.config.window);
    let meter = Meter::new(models, &paid.allowance);
    conversation.paid = Some(paid);
    let served = Served::over(service, &conversation.brain.socket);
    served
        .map(|served| served.with_window(window))
        .map(|served| Arc::new(Settled { served, meter }) as Arc<dyn Model>)
        .map_err(|error| ApiError::new(ErrorKind::Internal, error.to_string()))
}

/// A model whose answer is given on when the book knows what it cost: it has the last words of the answer
/// a moment after whoever asked.
struct Settled {
    served: Served,
    meter: Meter,
}

#[async_trait]
impl Model for Settled {
    async fn respond(
        &self,
        request: &Request<'_>,
        pieces: &mut Pieces<'_>,
    ) -> nacre_agent::model::Result<Reply> {
        let reply = self.served.respond(request, pieces).await?;
        for _ in 0..SETTLES_IN_MS {
            if self.meter.dollars().is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(reply)
    }

    fn window(&self) -> u64 {
        self.served.window()
    }
}

/// How the provider is spoken to, by way of our own address.
fn service(kind: Kind, provider: &str, model: &str, token: &Secret) -> Service {
    let (format, version) = match kind {
        Kind::Openai => (Format::Responses, ""),
        Kind::Openrouter | Kind::OpenaiCompatible => (Format::Chat, ""),
        Kind::Anthropic => (Format::Messages, "v1/"),
        Kind::Google => (Format::Gemini, "v1beta/"),
    };
    Service {
        format,
        base: format!("http://nacre{}{provider}/{version}", crate::provider::PREFIX),
        token: token.reveal().to_owned(),
        model: model.to_owned(),
        longest: None,
    }
}

impl Memory {
    /// What can be said of it without its events.
    pub(super) fn describe(&self, meta: &mut Meta) {
        meta.steps = self.session.steps;
        meta.input_tokens = self.session.usage.input;
        meta.output_tokens = self.session.usage.output;
    }
}
