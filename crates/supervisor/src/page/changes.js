
// Changes of files: how many, which, and line by line.

/** Files shown of one checkpoint, and lines of one file. */
const MOST_FILES = 50;
const MOST_LINES = 400;
/** Few enough to be shown open. */
const FEW = 3;

const number = (count, one, many) => `${count.toLocaleString()} ${count === 1 ? one : many}`;

/** `+3 ~1 −2`, and in words for who hears it. */
function counts({ added, changed, removed }) {
  const made = element("span", undefined, "counts");
  const parts = [[added, "+", "added", "new"], [changed, "~", "changed", "other"], [removed, "−", "removed", "gone"]];
  const there = parts.filter(([count]) => count > 0);
  for (const [count, sign, , name] of there) {
    const shown = element("span", `${sign}${count.toLocaleString()}`, name);
    shown.ariaHidden = "true";
    made.append(shown);
  }
  made.append(element("span", there.map(([count, , word]) => `${count} ${word}`).join(", "), "unseen"));
  return made;
}

function changeLine(change) {
  const [sign, word, name] = !change.old ? ["+", "added", "new"] : change.new ? ["~", "changed", "other"] : ["−", "removed", "gone"];
  const line = element("span", undefined, "change");
  const mark = element("span", sign, `mark ${name}`);
  mark.ariaHidden = "true";
  const path = element("span", part(change.path).label, "name");
  if ((change.new ?? change.old).kind === "directory") path.append("/");
  if (change.from) path.append(element("span", ` ← ${part(change.from).label}`, "target"));
  line.append(mark, element("span", `${word} `, "unseen"), path);
  return line;
}

/** A file of a checkpoint; its lines unfold when there are any. */
function changeItem(change, open) {
  const item = element("li");
  if (!change.diff) {
    item.append(changeLine(change));
    const why = { binary: "not text", too_large: "too long to compare" }[change.omitted];
    if (why) item.firstChild.append(element("span", ` ${why}`, "target"));
    return item;
  }
  const folded = element("details");
  folded.open = open;
  const summary = element("summary");
  summary.append(changeLine(change));
  folded.append(summary, diff(change.diff));
  item.append(folded);
  return item;
}

function diff(text) {
  const lines = text.replace(/\n$/, "").split("\n").filter((line) => !/^(---|\+\+\+) /.test(line));
  const shown = element("pre", undefined, "diff");
  shown.tabIndex = 0;
  shown.ariaLabel = "Lines";
  const kinds = { "+": "new", "-": "gone", "@": "place", "\\": "place" };
  for (const line of lines.slice(0, MOST_LINES)) shown.append(element("span", `${line}\n`, kinds[line[0]] ?? ""));
  if (lines.length > MOST_LINES) shown.append(element("span", `${number(lines.length - MOST_LINES, "more line", "more lines")}\n`, "place"));
  return shown;
}

function changeList(changes) {
  const list = element("ul", undefined, "changes");
  list.append(...changes.changes.slice(0, MOST_FILES).map((change) => changeItem(change, changes.total <= FEW)));
  const rest = changes.total - list.childElementCount;
  if (rest > 0) list.append(element("li", `and ${number(rest, "more", "more")}`, "rest"));
  return list;
}

/** Shows what a checkpoint changed, in `place`. */
async function unfold(id, place) {
  place.replaceChildren(element("p", "Loading", "note"));
  try {
    const changes = await answer(`supervisor/history/checkpoints/${id}?diff=true&limit=${MOST_FILES}`, LONG_PATIENCE);
    const remarks = (changes.checkpoint?.remarks ?? []).slice(0, MOST_FILES);
    const notes = remarks.map(({ path, message }) => element("p", `${part(path).label}: ${message}.`, "note remark"));
    place.replaceChildren(...notes, changeList(changes));
  } catch (error) {
    place.replaceChildren(element("p", inWords(error), "note"));
    place.firstChild.dataset.kind = "bad";
  }
}
