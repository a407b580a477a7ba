
// Files. The address of the page says which folder is shown, so that back, reload and bookmarks work.

const PAGE = 200;
/** A folder with more rows than this is not looked at again by itself. */
const REFRESHED = 1000;
let turn = 0;
let next = null;
let shown = "";

/** One name: as people read it, and byte for byte as an address holds it. */
function part(name) {
  if (typeof name === "string") return { label: readable(name), encoded: encodeURIComponent(name) };
  // What is not UTF-8 comes as base64.
  const bytes = Uint8Array.from(atob(name.base64), (c) => c.charCodeAt(0));
  const encoded = Array.from(bytes, (b) => `%${b.toString(16).padStart(2, "0")}`).join("");
  return { label: readable(new TextDecoder().decode(bytes)), encoded };
}

function partOfAddress(encoded) {
  const bytes = encoded.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
  const label = new TextDecoder().decode(Uint8Array.from(bytes, (c) => c.charCodeAt(0)));
  return { label: readable(label), encoded };
}

/** Control characters as their pictures: a name is one line. */
const readable = (name) => name.replace(/[\x00-\x1f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0))).replace(/\x7f/g, "\u2421");

function folder() {
  const path = location.hash.startsWith("#/") ? location.hash.slice(2) : "";
  return path.split("/").filter(Boolean).map(partOfAddress);
}

const joined = (parts) => parts.map((p) => p.encoded).join("/");
const hash = (parts) => `#/${joined(parts)}`;
const query = (parts) => `path=${joined(parts) || "."}`;

/** `how` is "open", "again" (only what changed, and nothing said) or "more". */
async function showFolder(how) {
  const rows = at("files").childElementCount;
  if (how === "again" && rows > REFRESHED) return;
  const mine = ++turn;
  const parts = folder();
  if (how === "open") startFolder(parts);
  const after = how === "more" ? `&after=${part(next).encoded}` : "";
  const limit = how === "again" ? Math.max(PAGE, rows) : PAGE;
  try {
    const listing = await ask(`supervisor/files/list?${query(parts)}&limit=${limit}${after}`);
    if (mine === turn) fill(parts, listing, how);
  } catch (error) {
    if (mine !== turn) return;
    // No answer at all is not this folder's trouble: what was listed stays.
    if (how === "again" && (!(error instanceof Refusal) || error.status === 503 || error.status === 401)) throw error;
    cannotShow(error);
  }
}

function startFolder(parts) {
  at("files").replaceChildren();
  at("welcome").hidden = at("more").hidden = true;
  shown = "";
  say("", "Loading");
  const crumb = (label, depth) => {
    const link = element("a", label);
    link.href = hash(parts.slice(0, depth));
    if (depth === parts.length) link.setAttribute("aria-current", "page");
    const item = element("li");
    item.append(link);
    return item;
  };
  at("crumbs").replaceChildren(crumb("workspace", 0), ...parts.map((p, i) => crumb(p.label, i + 1)));
}

function fill(parts, listing, how) {
  const state = JSON.stringify(listing);
  if (how === "again" && state === shown) return;
  shown = how === "more" ? "" : state;
  const rows = listing.entries.map((entry) => row(parts, entry));
  if (how === "more") at("files").append(...rows);
  else replaceRows(rows);
  if (how === "more") rows[0]?.querySelector("a")?.focus();
  next = listing.next ?? null;
  at("more").hidden = !next;
  at("welcome").hidden = at("files").childElementCount > 0;
  at("example-line").hidden = parts.length > 0;
  say("", "");
}

/** Whoever stands on a row still stands on it afterwards. */
function replaceRows(rows) {
  const href = at("files").contains(document.activeElement) ? document.activeElement.href : null;
  at("files").replaceChildren(...rows);
  if (href) rows.map((r) => r.querySelector("a")).find((a) => a?.href === href)?.focus({ preventScroll: true });
}

function cannotShow(error) {
  at("files").replaceChildren();
  at("welcome").hidden = at("more").hidden = true;
  shown = "";
  say("bad", error.kind === "not_found" ? "This folder is not there any more." : `This folder cannot be shown: ${error.message}.`);
}

function say(kind, words) {
  at("files-note").dataset.kind = kind;
  at("files-note").hidden = !words;
  write("files-note", words);
}

const KINDS = { directory: "folder", symlink: "link", fifo: "pipe", block_device: "device", char_device: "device" };

function row(parts, entry) {
  const name = part(entry.path);
  const path = [...parts, name];
  const item = element("li");
  const label = element("span", name.label, "name");
  const opens = opener(entry, name, path);
  opens.append(icon(entry.kind), label);
  if (entry.target) label.append(element("span", ` → ${part(entry.target).label}`, "target"));
  const modified = new Date(entry.modified_ns / 1e6);
  const time = element("time", modified.toLocaleString([], { dateStyle: "medium", timeStyle: "short" }), "meta when");
  time.dateTime = modified.toISOString();
  item.append(opens, time, element("span", entry.kind === "file" ? size(entry.size) : KINDS[entry.kind] ?? entry.kind, "meta"));
  return item;
}

function opener(entry, name, path) {
  if (entry.kind !== "file" && entry.kind !== "directory" && entry.kind !== "symlink") return element("span", undefined, "entry");
  const link = element("a", undefined, "entry");
  link.href = hash(path);
  if (entry.kind === "file") downloads(link, name, path);
  if (entry.kind === "symlink") link.addEventListener("click", (event) => { event.preventDefault(); follow(name, path); });
  return link;
}

function downloads(link, name, path) {
  link.href = address(`supervisor/files/content?${query(path)}`);
  link.download = name.label;
  link.title = "Download";
}

/** A link leads to a folder, to a file, or nowhere. */
async function follow(name, path) {
  try {
    const { kind } = await ask(`supervisor/files/stat?${query(path)}&follow=true`);
    if (kind === "directory") { location.hash = hash(path); return; }
    const link = element("a");
    downloads(link, name, path);
    link.click();
  } catch (error) {
    say("bad", error.kind === "not_found" ? `${name.label} leads nowhere.` : `${name.label} cannot be opened: ${error.message}.`);
  }
}

function icon(kind) {
  const known = { directory: "icon-folder", file: "icon-file", symlink: "icon-link" };
  return at(known[kind] ?? "icon-special").content.cloneNode(true);
}

at("more").addEventListener("click", () => showFolder("more"));
addEventListener("hashchange", () => showFolder("open"));
