
// Whether the page itself lives.

let loaded = false;
let lastError = "";
let scriptFailed = false;
let filled = false;

function isEmpty() {
  const root = document.getElementById("root");
  if (!root) return false;
  if (root.childElementCount) { filled = true; return false; }
  return true;
}
const isDead = () => scriptFailed || isEmpty();

/** `well`: the app is, so that a page which it served while it was not has only to be loaded again. */
async function lookAtPage(well) {
  if (!isEmpty()) { set("empty", null); return; }
  const late = performance.now() - born > GRACE || (loaded && lastError);
  if (coming || (!filled && !scriptFailed && !late)) return;
  if (well && changed && troubles.has("empty") && !troubles.has("overlay") && reload()) return;
  // A page that is replacing all of itself is empty for a moment.
  await pause(250);
  set("empty", isEmpty() ? { title: filled ? "The desktop has crashed." : "The desktop does not start.", detail: lastError } : null);
}

/** Parts of the page that crashed, by what they call themselves or by what they complain of. */
const crashed = new Map();
const nameOf = (detail) => detail?.id ?? detail?.message;

function tellOfCrashes() {
  const last = [...crashed.values()].at(-1);
  set("page", last ? { title: "A part of the desktop has crashed.", detail: [last.message, last.stack].filter(Boolean).join("\n") } : null);
}

/** A page that does not say when it is well shows it: the words of the crash are gone from it. */
function lookAtCrashes() {
  if (!crashed.size) return;
  const text = document.body?.textContent ?? "";
  for (const [name, crash] of crashed) {
    const shown = Boolean(crash.message) && text.includes(crash.message);
    if (crash.shown && !shown) crashed.delete(name);
    crash.shown = shown;
  }
  if (!coming) tellOfCrashes();
}

/** Vite tells of broken code in an element of its own, in the way of everything. */
function takeOverlay(overlay) {
  const text = (name) => overlay.shadowRoot?.querySelector(name)?.textContent?.trim() ?? "";
  const file = text(".file") || text(".file-link");
  const detail = [text(".message-body"), file, text(".frame")].filter(Boolean).join("\n\n");
  overlay.remove();
  set("overlay", { title: "The code of the desktop has an error.", detail, file });
}

/** Vite says nothing when it is fixed; the file does, when it can be loaded again. */
async function lookAtOverlay() {
  const trouble = troubles.get("overlay");
  if (!trouble) return;
  const path = trouble.file.split("?")[0].replace(/(:\d+)+$/, "");
  const url = path.startsWith(`${directory}/`) ? path.slice(directory.length + 1) : null;
  let fixed = true;
  if (url) fixed = await fetch(address(url.split("/").map(encodeURIComponent).join("/")), { cache: "no-store", signal: AbortSignal.timeout(3000) }).then(({ ok }) => ok, () => false);
  else await pause(700);
  if (fixed && troubles.get("overlay") === trouble) set("overlay", null);
}
