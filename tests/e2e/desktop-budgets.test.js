// What a first load of the desktop may weigh, page by page, in the copy that comes with Nacre. Bytes, requests,
// elements and shifts of the layout have limits; times depend on the machine and are only told.

import assert from "node:assert/strict";
import { test } from "node:test";
import { desk } from "./desktop.js";

const set = desk();
const KB = 1000;
/** Of the page that people come to first. */
const FIRST = { script: 250 * KB, style: 40 * KB, font: 0, image: 20 * KB, requests: 60 };
/** What a page asks for comes after its first paint, in this order or the other, as over a bad line. */
const DELAYS = [400, 150, 300, 200];
/** Of every page. */
const EACH = { shift: 0.02, elements: 1500 };
const PAGES = ["chat", "files", "timeline", "terminal", "roles", "runs", "usage", "network", "settings"];

/** Runs in the page before anything of it does. */
function watch() {
  const seen = { shift: 0, jumped: [], paint: 0, blocked: 0 };
  window.nacreSeen = seen;
  const says = ({ node, previousRect: was, currentRect: is }) => `<${node?.nodeName.toLowerCase()}> "${node?.textContent.slice(0, 40)}" from ${was.x},${was.y} to ${is.x},${is.y}`;
  new PerformanceObserver((list) => list.getEntries().filter((entry) => !entry.hadRecentInput).forEach((entry) => {
    seen.shift += entry.value;
    seen.jumped.push(...entry.sources.map(says));
  })).observe({ type: "layout-shift", buffered: true });
  new PerformanceObserver((list) => list.getEntries().forEach((entry) => { seen.paint = entry.startTime; })).observe({ type: "largest-contentful-paint", buffered: true });
  new PerformanceObserver((list) => list.getEntries().forEach((entry) => { seen.blocked += Math.max(0, entry.duration - 50); })).observe({ type: "longtask", buffered: true });
}

/** Loads a page as if for the first time. */
async function load(owner, name, delays) {
  const sums = { script: 0, style: 0, font: 0, image: 0, requests: 0 };
  const page = await owner.context.newPage();
  await page.addInitScript(watch);
  let asked = 0;
  const late = async (route) => {
    await new Promise((resolve) => setTimeout(resolve, delays[asked++ % delays.length]));
    await route.continue().catch(() => {});
  };
  await page.route((url) => /^\/(supervisor|conductor|admin)\//.test(url.pathname) && !url.pathname.startsWith("/supervisor/desktop/"), late);
  const wire = await owner.context.newCDPSession(page);
  const kinds = new Map();
  await wire.send("Network.enable");
  await wire.send("Network.setCacheDisabled", { cacheDisabled: true });
  wire.on("Network.responseReceived", ({ requestId, type }) => kinds.set(requestId, { Script: "script", Stylesheet: "style", Font: "font", Image: "image" }[type]));
  wire.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    sums.requests += 1;
    const kind = kinds.get(requestId);
    if (kind) sums[kind] += encodedDataLength;
  });
  await page.goto(await set.computer.url(`/supervisor/desktop/#/${name}`));
  await page.locator('html[data-nacre="built"] nav[aria-label="Desktop"]').waitFor();
  await page.waitForLoadState("networkidle").catch(() => {});
  await page.waitForTimeout(800);
  const seen = await page.evaluate(() => ({ ...window.nacreSeen, elements: document.querySelectorAll("*").length }));
  await page.close();
  return { ...sums, ...seen };
}

test("no page is heavier, jumps more or holds more than it may", async () => {
  const owner = await set.open("#/chat");
  await owner.says("hello");
  await owner.reads("Hello, I am here.");
  // Pages that are left at once cut their sockets off.
  owner.expects(/./);
  const found = {};
  for (const name of PAGES) {
    const [one, other] = [await load(owner, name, DELAYS), await load(owner, name, DELAYS.toReversed())];
    found[name] = one.shift > other.shift ? one : other;
  }
  console.table(Object.fromEntries(Object.entries(found).map(([name, { script, style, requests, elements, shift, paint, blocked }]) => [
    name, { "script KB": Math.round(script / KB), "style KB": Math.round(style / KB), requests, elements, shift: Number(shift.toFixed(3)), "paint ms": Math.round(paint), "blocked ms": Math.round(blocked) },
  ])));
  const over = [];
  const limit = (name, what, most) => { if (found[name][what] > most) over.push(`${name}: ${what} is ${found[name][what]}, at most ${most}${what === "shift" ? `: ${found[name].jumped.join("; ")}` : ""}`); };
  for (const [what, most] of Object.entries(FIRST)) limit("chat", what, most);
  for (const name of PAGES) for (const [what, most] of Object.entries(EACH)) limit(name, what, most);
  assert.deepEqual(over, []);
  await owner.leave();
});
