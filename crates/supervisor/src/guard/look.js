
// One look at everything, soon after something happened.

let directory = "/workspace/shell";
let instance = "runtime";
let phase = null;
/** When it came to that phase, by the clock of this page. */
let phaseSince = born;
let runs = 0;
/** Ends in a row that nobody asked for: without any, a start was asked for. */
let ends = 0;
/** So long a start that was asked for is waited for, without an offer to undo anything; the first may have
    to make a lot ready. */
const RESTARTS = 10000;
const FIRST_START = 30000;
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
/** Since when something is recorded that may have mended what is wrong: named only when it has not. */
let unnamed = null;
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
  if (found && !found.ok) await lookAtProcesses().catch(() => {});
  // One that ended may be up again in a moment.
  if (found && ofHealth(found)?.passing && !hung && !isComing() && !troubles.has("health")) {
    await pause(500);
    found = await health();
  }
  // Without an answer the computer is away: the page says so, and the socket comes back.
  if (found) judge(found, ofHealth(found));
  await lookAtOverlay();
  lookAtCrashes();
  await lookAtPage(found?.ok);
  changed = false;
  looking = false;
  if (unnamed !== null && performance.now() - unnamed >= SETTLES) {
    unnamed = null;
    if (panel && !busy) describeUndo();
  }
  if (again) soon();
  else if (unnamed !== null || performance.now() - changedAt < SETTLES) soon(400);
  else if (troubles.has("health") || found?.ok === false) soon(1000);
  again = false;
}

function filesChanged() {
  changed = true;
  changedAt = performance.now();
  soon();
}

/** On its way because somebody asked for that, and not late: there is nothing to take back. */
const isComing = () => ["starting", "stopping"].includes(phase) && ends === 0 && performance.now() - phaseSince < (runs > 1 ? RESTARTS : FIRST_START);

/** Such a start is on its way, and what is wrong follows from it. */
let coming = false;

function judge(found, ill) {
  const came = coming && found.ok;
  coming = Boolean(ill) && isComing();
  set("health", coming || (built && !waiting) ? null : ill);
  if (busy) return;
  if (!built) {
    renderPill(coming ? "restarting" : "");
    // What the page could not get meanwhile it gets now.
    if (came && (crashed.size || isEmpty())) reload();
    return;
  }
  // Also when it is the copy itself that is wanted by now, which says so.
  const ready = found.ok && (found.mode === "source" || waiting);
  if (ready && !touched && reload()) return;
  renderPill(ready ? "ready" : coming ? "starting" : "");
}

function know(process) {
  phase = process.state;
  phaseSince = performance.now() - Math.max(0, Date.now() + ahead - process.since);
  runs = process.run;
  ends = process.ends_in_a_row ?? 0;
  hung = process.responding === false;
}

async function lookAtProcesses() {
  const { processes, config_error: error } = await ask("supervisor/processes");
  const mount = base.pathname.split("/").filter(Boolean).join("/");
  const app = processes.find(({ name }) => mount && name === `runtime@${mount}`) ?? processes.find(({ name }) => name === "runtime");
  own = processes.map(({ command }) => command);
  if (app) {
    instance = app.name;
    know(app);
    if (typeof app.directory === "string") directory = app.directory.replace(/\/$/, "");
  }
  ofConfig(error);
}

function ofConfig(error) {
  set("config", error ? { title: "nacre.toml cannot be used.", detail: (error.line ? `line ${error.line}: ` : "") + error.reason, file: "nacre.toml" } : null);
}
