"use strict";
// The guard of the desktop. It stands in front of the page's own code and offers a way back when that
// breaks. Nothing here comes from the workspace, and nothing of the page is needed.

const self = document.currentScript;
if (!self || window.nacreGuard) return;
window.nacreGuard = true;

const base = new URL("../", self.src);
const address = (path) => new URL(path, base);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const { nacre: kind, reason } = document.documentElement.dataset;
const built = kind === "built";
/** A copy that is shown on purpose is not waiting for anything. */
const waiting = built && ["starting", "failed"].includes(reason);
const GRACE = 4000;
const born = performance.now();
/** How far the supervisor's clock is ahead of this one. */
let ahead = 0;

async function ask(path, request = {}, patience = 10000) {
  const response = await fetch(address(path), { headers: { accept: "application/json" }, signal: AbortSignal.timeout(patience), ...request });
  ahead = Date.parse(response.headers.get("date")) - Date.now() || 0;
  const body = await response.json().catch(() => null);
  if (!response.ok) throw new Error(body?.error?.message ?? `the answer was ${response.status}`);
  return body;
}
const send = (path, body) => ask(path, { method: "POST", body: body && JSON.stringify(body) }, 600000);
const health = () => ask("supervisor/desktop/health").catch(() => null);
