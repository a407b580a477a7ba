
// What is wrong, by where that is known from; the first is what the rest follows from.

const ORDER = ["health", "config", "overlay", "page", "empty"];
const troubles = new Map();
const dismissed = new Set();
/** By what it is known again, so that what was dismissed stays so. */
const mark = ({ key, title, detail }) => key ?? `${title}\n${detail ?? ""}`;

function set(name, trouble) {
  const known = troubles.get(name);
  if (trouble && known && mark(known) === mark(trouble)) return;
  if (!trouble && !known) return;
  if (trouble) troubles.set(name, trouble);
  else { troubles.delete(name); dismissed.delete(mark(known)); }
  render();
}

const CHECKS = {
  modules: "The packages of the desktop are missing.",
  process: "The server of the desktop does not answer.",
  page: "The page of the desktop cannot be loaded.",
  entry: "The code of the desktop cannot be loaded.",
};

function ofHealth({ ok, checks = [] }) {
  if (ok) return null;
  const bad = checks.filter((check) => !check.ok);
  const first = Object.keys(CHECKS).find((name) => bad.some((check) => check.name === name));
  const title = CHECKS[first] ?? "The desktop is not well.";
  return { key: title, title, detail: bad.map(({ name, detail }) => detail ?? name).join("\n"), passing: first === "process" };
}
