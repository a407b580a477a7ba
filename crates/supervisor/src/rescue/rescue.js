
"use strict";
// Keeps the states of processes current, and goes back to the desktop when that is well again. The page
// does everything else without this.

const { prefix: mount, ...flags } = document.body.dataset;
const is = (flag) => flag in flags;
const at = (id) => document.getElementById(id);
const PAUSE = 1000;
/** In a row, before it is believed: right after an order things are still as they were. */
const ENOUGH = 2;
let well = 0;
let wasIll = is("instead");
let stays = is("reading");

for (const time of document.querySelectorAll("time[data-at]")) time.title = new Date(Number(time.dataset.at)).toLocaleString();
for (const log of document.querySelectorAll(".output")) log.scrollTop = log.scrollHeight;

async function ask(path) {
  const options = { headers: { accept: "application/json" }, signal: AbortSignal.timeout(5000) };
  const answer = await fetch(`${mount}/supervisor/${path}`, options);
  if (!answer.ok) throw new Error(`the answer was ${answer.status}`);
  return answer.json();
}

function tell(state, words) {
  const place = at("state");
  place.hidden = false;
  place.dataset.state = state;
  if (place.textContent !== words) place.textContent = words;
}

const DOTS = { ready: "ok", starting: "waiting", stopping: "waiting" };

function showProcesses(processes) {
  for (const { name, state, responding } of processes) {
    const row = [...document.querySelectorAll("[data-process]")].find((row) => row.dataset.process === name);
    const place = row?.querySelector(".state");
    if (!place) continue;
    const words = responding === false ? "does not answer" : state.replace("-", " ");
    place.dataset.state = responding === false ? "lost" : DOTS[state] ?? "lost";
    // Only what differs from what the page said in words of its own.
    if (place.dataset.said && place.dataset.said !== words) place.textContent = words;
    place.dataset.said = words;
  }
}

async function look() {
  try {
    const [{ processes }, health] = await Promise.all([ask("processes"), ask("desktop/health").catch(() => null)]);
    showProcesses(processes);
    const app = processes.find(({ name }) => name === "runtime");
    judge(health ? health.ok : !app || app.state === "ready");
  } catch {
    well = 0;
    tell("waiting", "Your computer does not answer");
  }
  setTimeout(look, document.hidden ? 5 * PAUSE : PAUSE);
}

function judge(ok) {
  tell(ok ? "ok" : "lost", ok ? "The desktop is well" : "The desktop is not well");
  if (!ok) { well = 0; wasIll = true; at("back").hidden = true; return; }
  well += 1;
  if (well < ENOUGH || !(wasIll || is("acted"))) return;
  at("back").hidden = false;
  if (!stays && !document.hidden) back();
}

let going = null;
function back() {
  if (going) return;
  // A desktop that says it is well and is not must not make the two take turns at full speed.
  let wait = is("instead") ? 0 : 1500;
  try {
    const last = JSON.parse(sessionStorage.getItem("nacre-back") ?? "null");
    if (last && Date.now() - last.at < 30000) wait = Math.min(Math.max(last.wait * 2, 1000), 20000);
    sessionStorage.setItem("nacre-back", JSON.stringify({ at: Date.now(), wait }));
  } catch { /* Without storage there is nothing to remember. */ }
  going = setTimeout(() => location.replace(`${mount}/`), wait);
}

at("stay").addEventListener("click", () => {
  stays = true;
  clearTimeout(going);
  at("stay").hidden = true;
});
for (const form of document.forms) {
  form.addEventListener("submit", (event) => {
    clearTimeout(going);
    // Twice would undo two changes.
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });
}
addEventListener("pageshow", () => { for (const form of document.forms) delete form.dataset.sent; });

if (is("working")) setTimeout(() => location.reload(), PAUSE);
else look();
