
// One look at everything, soon after something happened.

let directory = "/workspace/shell";
let instance = "runtime";
let phase = null;
/** Command lines of the processes themselves: what they write is not what somebody did. */
let own = [];
let timer = null;
let since = null;
/** Files were, since the page was last looked at. */
let changed = false;
/** A server needs a moment to notice what it breaks on. */
const SETTLES = 2500;
let changedAt = -SETTLES;
/** It runs and does not answer: nothing to wait for. */
let hung = false;
let looking = false;
let again = false;

function soon(wait = 150) {
  if (document.hidden) return;
  since ??= performance.now();
  clearTimeout(timer);
  timer = setTimeout(look, Math.max(0, Math.min(wait, since + 1000 - performance.now())));
}

async function look() {
  since = null;
  if (looking) { again = true; return; }
  looking = true;
  let found = await health();
  // One that ended may be up again in a moment.
  if (found && ofHealth(found)?.passing && !hung && !troubles.has("health")) {
    await pause(500);
    found = await health();
  }
  // Without an answer the computer is away: the page says so, and the socket comes back.
  if (found) judge(found, ofHealth(found));
  await lookAtOverlay();
  await lookAtPage(found?.ok);
  changed = false;
  looking = false;
  if (again) soon();
  else if (performance.now() - changedAt < SETTLES) soon(400);
  else if (troubles.has("health")) soon(1000);
  again = false;
}

function filesChanged() {
  changed = true;
  changedAt = performance.now();
  soon();
}

function judge(found, ill) {
  if (built && !waiting) ill = null;
  if (reason === "starting" && (phase === "starting" || performance.now() - born < 15000)) ill = null;
  set("health", ill);
  if (!built || busy) return;
  // Also when it is the copy itself that is wanted by now, which says so.
  const ready = found.ok && (found.mode === "source" || waiting);
  if (ready && !touched && reload()) return;
  renderPill(ready ? "ready" : reason === "starting" && !ill ? "starting" : "");
}

async function lookAtProcesses() {
  const { processes, config_error: error } = await ask("supervisor/processes");
  const mount = base.pathname.split("/").filter(Boolean).join("/");
  const app = processes.find(({ name }) => mount && name === `runtime@${mount}`) ?? processes.find(({ name }) => name === "runtime");
  own = processes.map(({ command }) => command);
  if (app) {
    instance = app.name;
    phase = app.state;
    if (typeof app.directory === "string") directory = app.directory.replace(/\/$/, "");
  }
  ofConfig(error);
}

function ofConfig(error) {
  set("config", error ? { title: "nacre.toml cannot be used.", detail: (error.line ? `line ${error.line}: ` : "") + error.reason, file: "nacre.toml" } : null);
}
