
// Taking back: undo, redo, and the files as they once were. What others did later is not overwritten
// without a word.

/** Who or what a checkpoint is put down to. */
function who({ cause, authors }) {
  const some = (ids) => (ids.length > 3 ? `${ids.length} checkpoints` : ids.map((id) => `#${id}`).join(", "));
  switch (cause.kind) {
    case "first": return "As it was when history began";
    case "undo": return `Undo of ${some(cause.of)}${cause.path ? ` in ${part(cause.path).label}` : ""}`;
    case "redo": return `Redo of #${cause.of}`;
    case "restore": return `Back to #${cause.to}`;
  }
  if (!authors.length) return "Something in the background";
  const others = authors.length > 1 ? `, and ${number(authors.length - 1, "other", "others")}` : "";
  return authorName(authors[0]) + others;
}

function authorName(author) {
  switch (author.kind) {
    // Folded, its lines are one; unfolded, they are as they were typed.
    case "command": return `$ ${author.line.trim().split("\n").map(readable).join("\n")}`;
    case "api": return readable(author.call);
    case "conversation": return `Conversation ${author.id}`;
    case "ssh": return `SSH ${author.session}`;
  }
  return author.kind;
}

let working = false;

async function takeBack(words, path, body) {
  if (working) return;
  working = true;
  tellHistory("", `${words}.`);
  tellAfter("", "");
  try {
    let outcome = await send(path, body);
    if (outcome.conflicts.length) {
      const choice = await askAboutConflicts(outcome.conflicts);
      if (!choice) { tellHistory("", "Nothing was changed."); return; }
      tellHistory("", `${words}.`);
      outcome = await send(path, { ...body, on_conflict: choice });
    }
    tellOutcome(outcome);
  } catch (error) {
    tellHistory("bad", inWords(error));
  } finally {
    working = false;
    showFolder("again").catch(look);
    // Otherwise the new checkpoint is told.
    if (!isListening()) showHistory();
  }
}

/** Shows first what it would do. */
async function restore(id) {
  if (working) return;
  working = true;
  const path = "supervisor/history/restore";
  tellHistory("", "Looking at what would change.");
  tellAfter("", "");
  let agreed = null;
  try {
    const { changes } = await send(path, { checkpoint: id, dry_run: true, on_conflict: "overwrite" });
    agreed = changes.total ? await preview(id, changes) : null;
    tellHistory("", changes.total ? "Nothing was changed." : "Everything is as it was then.");
  } catch (error) {
    tellHistory("bad", inWords(error));
  }
  working = false;
  if (agreed) await takeBack("Restoring", path, { checkpoint: id });
}

function preview(id, changes) {
  return choose({
    title: `Restore to #${id}?`,
    words: `${number(changes.total, "name would become what it was", "names would become what they were")} then. You can undo this.`,
    list: [...changeList(changes).children],
    choices: [{ label: "Restore", value: "restore" }],
  });
}

const REASONS = {
  changed_later: "was changed later",
  changed_between: "was changed in between",
  holds_later_files: "holds files that came later",
  parent_replaced: "is in a folder that was replaced",
};

function askAboutConflicts(conflicts) {
  const list = conflicts.slice(0, MOST_FILES).map(conflictItem);
  const rest = conflicts.length - list.length;
  if (rest > 0) list.push(element("li", `and ${number(rest, "more", "more")}`, "rest"));
  return choose({
    title: `${number(conflicts.length, "file was", "files were")} changed since`,
    words: "Nothing has been touched yet. What should become of what is there now?",
    list,
    choices: [{ label: "Keep the present", value: "keep" }, { label: "Overwrite", value: "overwrite", kind: "stop" }],
  });
}

function conflictItem({ path, reason, by }) {
  const item = element("li");
  item.append(element("span", part(path).label, "name"), ` ${REASONS[reason] ?? reason}`);
  if (by) item.append(` by #${by.id}: `, element("code", who(by)));
  return item;
}

/** The value of what was chosen, or null. */
function choose({ title, words, list, choices }) {
  const dialog = at("question");
  write("question-title", title);
  write("question-words", words);
  at("question-names").replaceChildren(...list);
  const button = ({ label, value, kind }) => {
    const made = element("button", label, kind);
    made.type = "button";
    made.addEventListener("click", () => dialog.close(value));
    return made;
  };
  const cancel = button({ label: "Cancel", value: "", kind: "quiet" });
  at("question-choices").replaceChildren(...choices.map(button), cancel);
  dialog.returnValue = "";
  dialog.showModal();
  cancel.focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue || null), { once: true });
  });
}

function tellOutcome({ checkpoint, remarks = [] }) {
  if (!checkpoint) { tellHistory("", "There was nothing to change."); return; }
  const { added, changed, removed } = checkpoint;
  const did = [[added, "brought back"], [changed, "changed back"], [removed, "taken away"]];
  const words = did.filter(([count]) => count).map(([count, word]) => `${count.toLocaleString()} ${word}`).join(", ");
  const first = remarks[0] ? ` ${part(remarks[0].path).label}: ${remarks[0].message}.` : "";
  const more = remarks.length > 1 ? ` And ${number(remarks.length - 1, "more remark", "more remarks")}.` : "";
  tellHistory(first ? "bad" : "good", `${words ? sentence(words) : "Done."}${first}${more}`);
}

/** Of what the files that were put back made start again. */
function tellProcesses(processes) {
  if (!processes.length) return;
  const down = processes.filter(({ ready }) => !ready);
  const names = (some) => some.map(({ name }) => (name === "runtime" ? "the app" : name)).join(", ");
  if (!down.length) tellAfter("good", sentence(`${names(processes)} ${processes.length === 1 ? "is" : "are"} ready again`));
  else tellAfter("bad", sentence(`${names(down)}: not ready${down[0].reason ? `, it ${down[0].reason}` : ""}`));
}

function tellIn(id, kind, words) {
  at(id).dataset.kind = kind;
  at(id).hidden = !words;
  write(id, words);
}

const tellHistory = (kind, words) => tellIn("history-result", kind, words);
const tellAfter = (kind, words) => tellIn("history-after", kind, words);

at("undo").addEventListener("click", () => takeBack("Undoing", "supervisor/history/undo", { last: 1 }));
at("redo").addEventListener("click", () => takeBack("Redoing", "supervisor/history/redo", {}));
