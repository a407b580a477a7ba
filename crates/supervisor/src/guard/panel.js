
// What is shown. In a tree of its own, so that neither styles the other.

let host = null;
let tree = null;
let layer = null;
let panel = null;
let pill = null;
let before = null;
let busy = false;
let touched = false;

function make(tag, text, name) {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  if (name) made.className = name;
  return made;
}

function button(label, work, name) {
  const made = make("button", label, name);
  made.type = "button";
  made.addEventListener("click", work);
  return made;
}

function ground() {
  if (!host) {
    host = make("div");
    tree = host.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    tree.adoptedStyleSheets = [sheet];
    layer = make("div", "", "layer");
    tree.append(layer);
  }
  // Beside the body: a page that replaces all it has leaves it there.
  if (!host.isConnected) document.documentElement.append(host);
  const scheme = getComputedStyle(document.documentElement).colorScheme;
  layer.style.colorScheme = scheme === "normal" ? "light dark" : scheme;
  return layer;
}

const current = () => ORDER.map((name) => troubles.get(name)).filter((trouble) => trouble && !dismissed.has(mark(trouble)));

/** Only what is new: each write is announced. */
function write(place, text) {
  if (place.textContent !== text) place.textContent = text;
  place.hidden = !text;
}

function render() {
  if (busy) return;
  const all = current();
  if (!all.length) { hide(); return; }
  if (!panel) show();
  write(panel.title, all[0].title);
  write(panel.words, all.slice(1).map((trouble) => trouble.title).join(" "));
  write(panel.detail, [...new Set(all.map((trouble) => trouble.detail).filter(Boolean))].join("\n\n").slice(0, 4000));
  nameUndo();
}

function show() {
  renderPill("");
  const card = make("div", "", "card");
  card.tabIndex = -1;
  for (const [name, value] of Object.entries({ role: "alertdialog", "aria-labelledby": "t", "aria-describedby": "w d u" })) card.setAttribute(name, value);
  const title = make("h2"), words = make("p"), detail = make("pre"), undoing = make("p", "", "soft"), said = make("p", "", "soft"), acts = make("div", "", "acts");
  [title.id, words.id, detail.id, undoing.id] = ["t", "w", "d", "u"];
  detail.tabIndex = 0;
  said.setAttribute("role", "status");
  const undo = button("Undo", () => takeBack(), "first");
  const restart = button("Restart", () => carryOut("Restarting.", () => send(`supervisor/processes/${encodeURIComponent(instance)}/restart`)));
  const rescue = make("a", "Rescue");
  rescue.href = address("supervisor/rescue");
  acts.append(undo, restart, rescue, button("Dismiss", dismiss));
  card.append(title, words, detail, undoing, acts, said);
  card.addEventListener("keydown", (event) => { if (event.key === "Escape") { event.stopPropagation(); dismiss(); } });
  ground().append(card);
  panel = { card, title, words, detail, undoing, undo, restart, said, acts, target: null, since: Date.now() + ahead };
  // Whoever is typing goes on typing.
  before = document.activeElement;
  if (!before || before === document.body || isDead()) card.focus({ preventScroll: true });
}

function hide() {
  if (!panel) return;
  const focused = tree.activeElement;
  panel.card.remove();
  panel = null;
  if (focused && before?.isConnected) before.focus?.({ preventScroll: true });
}

function dismiss() {
  for (const trouble of current()) dismissed.add(mark(trouble));
  busy = false;
  hide();
}

function renderPill(what) {
  if (pill?.what === what || (!pill && !what)) return;
  pill?.remove();
  pill = null;
  if (!what || panel) return;
  pill = make("div", "", "card pill");
  pill.what = what;
  pill.setAttribute("role", "status");
  pill.append(make("i"), `The desktop is ${what}`);
  if (what === "ready") pill.append(button("Switch", () => location.reload(), "first"));
  ground().append(pill);
}
