
// History: the last checkpoints, newest first. New ones come by themselves.

const FIRST_SHOWN = 20;
const MORE_SHOWN = 50;
let wanted = FIRST_SHOWN;
let historyTurn = 0;
/** By id: what is shown of a checkpoint. */
const rows = new Map();

async function showHistory() {
  const mine = ++historyTurn;
  try {
    const { checkpoints, next } = await answer(`supervisor/history?limit=${wanted}`, LONG_PATIENCE);
    if (mine !== historyTurn) return;
    // What came while the answer was on its way is not in it.
    const newer = shownCheckpoints().filter(({ id }) => id > (checkpoints[0]?.id ?? 0));
    arrange([...newer, ...checkpoints]);
    at("older").hidden = !next;
  } catch (error) {
    // Whether the computer answers at all is for others to tell.
    if (mine === historyTurn && error instanceof Refusal) showHistoryState();
  }
}

/**
 * One more. The list is not asked for again: that records the present, which would be told here in
 * turn. What an undo means for older ones only the supervisor knows.
 */
function recorded(checkpoint) {
  showFolder("again").catch(look);
  if (checkpoint.cause.kind !== "change") { showHistory(); return; }
  const known = shownCheckpoints().filter(({ id }) => id !== checkpoint.id);
  const all = [checkpoint, ...known].sort((a, b) => b.id - a.id);
  if (all.length > wanted) at("older").hidden = false;
  arrange(all.slice(0, wanted));
}

const shownCheckpoints = () => [...rows.values()].map(({ checkpoint }) => checkpoint).sort((a, b) => b.id - a.id);

/** Rows that stay are not touched, so whoever stands on one still does. */
function arrange(checkpoints) {
  const list = at("checkpoints");
  const ids = new Set(checkpoints.map(({ id }) => id));
  for (const [id, { item }] of rows) if (!ids.has(id)) { item.remove(); rows.delete(id); }
  checkpoints.forEach((checkpoint, index) => {
    const row = rows.get(checkpoint.id) ?? checkpointRow(checkpoint);
    rows.set(checkpoint.id, row);
    row.set(checkpoint, index === 0);
    if (list.children[index] !== row.item) list.insertBefore(row.item, list.children[index] ?? null);
  });
}

function checkpointRow({ id, time }) {
  const item = element("li");
  const detail = element("div", undefined, "detail");
  detail.id = `checkpoint-${id}`;
  detail.hidden = true;
  const opener = unfolder(id, item, detail);
  const name = element("span", undefined, "name");
  const facts = element("span", undefined, "meta");
  opener.append(name, facts);
  const undoThis = act("Undo this", id, () => takeBack("Undoing", "supervisor/history/undo", { checkpoints: [id] }));
  const restoreHere = act("Restore to here", id, () => restore(id));
  const acts = element("div", undefined, "acts");
  acts.append(undoThis, restoreHere);
  item.append(opener, acts, detail);
  const row = { item };
  row.set = (checkpoint, newest) => {
    row.checkpoint = checkpoint;
    name.textContent = who(checkpoint);
    facts.replaceChildren(`#${id} `, moment(time), " ", counts(checkpoint));
    if (checkpoint.label) facts.append(" ", element("span", checkpoint.label, "tag"));
    if (checkpoint.undone) facts.append(" ", element("span", "undone", "tag"));
    item.classList.toggle("undone", checkpoint.undone === true);
    if (document.activeElement === undoThis && checkpoint.undone) opener.focus();
    undoThis.hidden = checkpoint.undone === true || checkpoint.cause.kind === "first";
    restoreHere.hidden = newest;
  };
  return row;
}

function unfolder(id, item, detail) {
  const button = element("button", undefined, "unfold");
  button.type = "button";
  button.ariaExpanded = "false";
  button.setAttribute("aria-controls", detail.id);
  button.addEventListener("click", () => {
    detail.hidden = !detail.hidden;
    item.classList.toggle("open", !detail.hidden);
    button.ariaExpanded = String(!detail.hidden);
    if (!detail.hidden) unfold(id, detail);
  });
  return button;
}

function act(label, id, work) {
  const button = element("button", label, "quiet");
  button.type = "button";
  button.append(element("span", ` (#${id})`, "unseen"));
  button.addEventListener("click", work);
  return button;
}

/** Today by the clock, earlier with the day. */
function moment(time) {
  const then = new Date(time);
  const today = then.toDateString() === new Date().toDateString();
  const words = today ? then.toLocaleTimeString() : then.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  const made = element("time", words);
  made.dateTime = then.toISOString();
  made.title = then.toLocaleString();
  return made;
}

let askingState = false;

/** Whether changes are being recorded, and if not, why. */
async function showHistoryState() {
  // While something large is put back, the answer waits for it.
  if (askingState) return;
  askingState = true;
  try {
    tellState(await answer("supervisor/history/status", LONG_PATIENCE));
  } catch (error) {
    if (error instanceof Refusal && error.status !== 401 && error.status !== 503) note("bad", `History cannot be shown. ${inWords(error)}`);
  }
  askingState = false;
}

function tellState({ state: { state, why }, checkpoints, set_aside: aside }) {
  at("history-acts").hidden = state === "off";
  if (state === "refusing") note("bad", `Changes are not being recorded: ${why}. What was recorded before is safe.`);
  else if (state === "off") note("", `No history is kept here: ${why}.`);
  else if (state === "starting") note("", "Looking at all files for the first time.");
  else if (aside) note("bad", `An older history could not be read and is kept as ${aside}.`);
  // The first is only where it begins.
  else note("", checkpoints > 1 ? "" : "Nothing has happened yet. Whatever changes files shows up here and can be undone.");
}

function note(kind, words) {
  tellIn("history-note", kind, words);
}

at("older").addEventListener("click", () => { wanted += MORE_SHOWN; showHistory(); });
