
// Taking back.

const ago = (time) => {
  const seconds = Math.max(0, Math.round((Date.now() - time) / 1000));
  return seconds < 5 ? "just now" : seconds < 60 ? `${seconds} s ago` : seconds < 3600 ? `${Math.floor(seconds / 60)} min ago` : new Date(time).toLocaleString();
};

function who({ cause, authors }) {
  if (cause.kind === "restore") return `going back to #${cause.to}`;
  const [author] = authors;
  switch (author?.kind) {
    case "command": return `$ ${author.line.trim().split("\n")[0].slice(0, 120)}`;
    case "api": return author.call.slice(0, 120);
    case "conversation": return "the agent";
    case "ssh": return "SSH";
  }
  return "something in the background";
}

const isOwn = ({ authors }) => authors.length > 0 && authors.every(({ kind, line }) => kind === "command" && own.includes(line.trim()));

/** The newest change that stands, of the desktop or of what runs it; with what the desktop's own processes
    wrote since, such as files that they made again. */
async function findTarget() {
  const places = current()[0]?.file === "nacre.toml" ? ["nacre.toml"] : [directory, "nacre.toml"];
  const pages = await Promise.all(places.map((place) => ask(`supervisor/history?limit=20&path=${encodeURIComponent(place)}`)));
  const found = new Map(pages.flatMap(({ checkpoints }) => checkpoints.map((checkpoint) => [checkpoint.id, checkpoint])));
  const newest = [...found.values()].sort((one, other) => other.id - one.id);
  return choose(newest) ?? choose((await ask("supervisor/history?limit=20")).checkpoints);
}

function choose(checkpoints) {
  const standing = checkpoints.filter(({ cause, undone }) => !undone && ["change", "restore"].includes(cause.kind));
  const index = standing.findIndex((checkpoint) => !isOwn(checkpoint));
  if (index >= 0) return { ...standing[index], all: standing.slice(0, index + 1).map(({ id }) => id) };
  return standing.length > 0 ? { ...standing[0], all: [standing[0].id] } : null;
}

const NOTHING = "There is nothing to undo.";
let describing = 0;
async function describeUndo() {
  const mine = ++describing;
  let words = NOTHING;
  let target = null;
  try {
    target = await findTarget();
    if (target) {
      const { changes, total } = await ask(`supervisor/history/checkpoints/${target.id}?limit=3`);
      const names = changes.map(({ path }) => (typeof path === "string" ? path : "a file"));
      const files = names.join(", ") + (total > names.length ? ` and ${total - names.length} more` : "");
      words = `Undo takes back: ${who(target)}, ${ago(target.time)}: ${files}`;
    }
  } catch (error) { words = `History does not answer: ${error.message}.`; }
  if (mine !== describing || !panel || busy) return;
  panel.target = target;
  panel.undo.disabled = words === NOTHING;
  write(panel.undoing, words);
}

/** One that was recorded just before something broke is what broke it: what comes later may be what mends it. */
function nameUndo() {
  const isKnown = panel.target?.time > panel.since - 2 * SETTLES;
  if (!isKnown) { describeUndo(); return; }
  unnamed = performance.now();
  soon(400);
}

/** Which one is known in a moment; until then it is the last. */
function takeBack(target = panel.target, choice = "ask") {
  const what = target ? { checkpoints: target.all } : { last: 1 };
  carryOut("Undoing.", async () => {
    const { conflicts } = await send("supervisor/history/undo", { ...what, on_conflict: choice });
    if (!conflicts.length) return;
    const names = conflicts.slice(0, 5).map(({ path }) => (typeof path === "string" ? path : "a file")).join(", ");
    askAbout(target, `Changed again since: ${names}${conflicts.length > 5 ? ", ..." : ""}. Nothing was touched.`);
    throw null;
  });
}

function askAbout(target, words) {
  write(panel.said, words);
  const choices = make("div", "", "acts");
  const choose = (label, value) => button(label, () => { choices.remove(); takeBack(target, value); });
  choices.append(choose("Undo anyway", "overwrite"), choose("Keep mine", "keep"));
  panel.choices?.remove();
  panel.choices = choices;
  panel.card.append(choices);
  choices.firstChild.focus();
}

async function carryOut(words, work) {
  if (busy || !panel) return;
  busy = true;
  const mine = panel;
  const enable = (on) => { for (const each of [mine.undo, mine.restart]) each.disabled = !on; };
  const dead = isDead() || troubles.has("page") || built;
  write(mine.said, words);
  enable(false);
  try {
    await work();
    write(mine.said, "Waiting for the desktop.");
    if (await recovered()) {
      // Stays as it is until the page is gone.
      if ((dead || isDead()) && reload()) return;
      troubles.clear();
      crashed.clear();
      dismissed.clear();
    } else write(mine.said, "It is still not well. Undo one more, or open Rescue.");
  } catch (error) {
    if (error) write(mine.said, `That did not work: ${error.message}.`);
  }
  busy = false;
  enable(true);
  mine.target = null;
  render();
  soon();
}

async function recovered() {
  const until = performance.now() + 20000;
  while (performance.now() < until && busy) {
    await pause(300);
    const found = await health();
    await lookAtOverlay();
    if (found?.ok && !troubles.has("overlay") && !troubles.has("config") && (!built || found.mode === "source")) return true;
  }
  return false;
}

/** False when this was tried too often lately to help. */
function reload() {
  try {
    const lately = JSON.parse(sessionStorage.getItem("nacre-guard") ?? "[]").filter((at) => Date.now() - at < 30000);
    if (lately.length > 2) return false;
    sessionStorage.setItem("nacre-guard", JSON.stringify([...lately, Date.now()]));
  } catch { /* Without storage it is not counted. */ }
  location.reload();
  return true;
}
