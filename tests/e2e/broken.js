// The story of every break: it is offered to be undone within two seconds, by one click, and the desktop is
// there again by itself.

import assert from "node:assert/strict";
import { until } from "./desktop.js";
import { Slowness } from "./slowness.js";

/** Of a person in front of a computer that has nothing else to do. */
const TWO_SECONDS = 2000;

/** The server of the desktop is started anew, and reads its settings then. */
export const RESTART = "pkill -x node || true";
export const HANGS = "echo 'while (true);' > shell/vite.config.ts";

/** `reload` also loads the page again before anything is undone: what is broken is then all there is. `sandbox`
    is another than live, at its `mount`. */
export async function story(set, { breaks, reload = false, says, mount = "/", sandbox = "live" }) {
  const owner = await set.open("#/settings", { mount });
  // A change that comes while the page is still on its way is in what arrives, or in nothing.
  await owner.page.getByRole("heading", { name: "Settings" }).first().waitFor();
  // What a broken page complains about is what this is about.
  owner.expects(/./);
  await set.computer.nacre("exec", "-s", sandbox, "--", "sh", "-c", breaks);
  if (reload) await owner.page.reload({ waitUntil: "commit" }).catch(() => {});
  await offersUndoInTime(owner);
  if (says) await owner.reads(says);
  await owner.page.getByRole("button", { name: /^Undo/ }).first().click();
  await owner.works();
  await owner.page.getByRole("heading", { name: "Settings" }).first().waitFor();
  await nothingIsWrong(owner);
  await healthy(set, sandbox);
  await owner.leave();
}

export async function offersUndoInTime(owner) {
  const slowness = Slowness.watch();
  const took = await owner.isOfferedUndo();
  const times = slowness.end();
  const said = `Undo was offered after ${took} ms, on a machine ${times.toFixed(1)} times slower than by itself`;
  if (took > TWO_SECONDS) console.log(`slow: ${said}`);
  assert.ok(took < TWO_SECONDS * times, said);
}

export const nothingIsWrong = (owner) => until("nothing is wrong any more", async () => (await owner.guard.count()) === 0);

export const healthy = (set, sandbox = "live") =>
  until("the desktop is healthy", async () => (await set.computer.json("desktop", "status", "-s", sandbox)).ok, 60_000);
