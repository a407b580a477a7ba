// Ways to break the server of the desktop, and the way back; and a start that somebody asked for, which is no
// break.

import assert from "node:assert/strict";
import { test } from "node:test";
import { HANGS, healthy, nothingIsWrong, RESTART, story } from "./broken.js";
import { desk, until } from "./desktop.js";

const set = desk({ prepare: (computer) => computer.nacre("dev", "create") });
const ENDS = `echo 'throw new Error("no start")' > shell/vite.config.ts; ${RESTART}`;

for (const reload of [false, true]) {
  const and = reload ? ", and the page is loaded again" : "";
  test(`modules that are gone${and}`, () => story(set, { breaks: "rm -rf shell/node_modules", reload }));
  test(`a dev server that ends, and cannot start${and}`, () => story(set, { breaks: ENDS, reload }));
  test(`a dev server that hangs${and}`, () => story(set, { breaks: HANGS, reload }));
  test(`a dev server that hangs while it starts${and}`, () => story(set, { breaks: `${HANGS}; ${RESTART}`, reload }));
}

test("a nacre.toml that can be read and does not run", async () => {
  // A change of the desktop that is well, which is not the one to take back.
  await set.computer.exec("echo mine > shell/mine.txt");
  await story(set, { breaks: "sed -i 's/npm run --silent dev/npm run --silent devv/' nacre.toml" });
  assert.equal(String(await set.computer.exec("cat shell/mine.txt")), "mine\n");
});

test("a syntax error in dev", () =>
  story(set, { breaks: "echo 'export const = ;' >> shell/src/app/app.tsx", mount: "/dev/", sandbox: "dev" }));

const now = async () => (await set.computer.json("process", "list")).processes.find(({ name }) => name === "runtime");

/** The server runs by another command from here on. */
async function runsBy(command) {
  const { run } = await now();
  await set.computer.exec(`sed -i 's/^command = .*/command = "${command}"/' nacre.toml`);
  await isAnother(run);
}

async function isAnother(run) {
  await until("it is another process", async () => (await now()).run > run && (await now()).state === "ready", 60_000);
  await healthy(set);
}

test("a restart that was asked for is said to be one, and there is nothing to undo", async () => {
  await runsBy("sleep 4; npm run --silent dev");
  const owner = await set.open("#/settings");
  await owner.page.getByRole("heading", { name: "Settings" }).first().waitFor();
  owner.expects(/./);
  const shown = [];
  await owner.page.exposeFunction("showed", (text) => shown.push(text));
  // All that the guard shows, as it comes.
  await owner.page.evaluate(() => {
    new MutationObserver(() => {
      for (const { shadowRoot } of document.documentElement.children) if (shadowRoot) window.showed(shadowRoot.textContent);
    }).observe(document.documentElement, { childList: true });
  });
  // Vite's client may load the page again at once. This is about the page that stays until there is another.
  await owner.page.route("**/*", async (route) => {
    if (!route.request().isNavigationRequest() || (await now()).state === "ready") return route.fallback();
    return route.fulfill({ status: 204 });
  });
  const { run } = await now();
  const said = owner.page.getByText("The desktop is restarting").waitFor();
  await Promise.all([said, set.computer.nacre("process", "restart", "runtime")]);
  // A page whose code is still to come cannot come now, and does when the server is back.
  await owner.page.getByRole("navigation", { name: "Desktop" }).getByRole("link", { name: "Spending", exact: true }).click();
  await isAnother(run);
  await owner.page.getByRole("main", { name: "Spending" }).waitFor();
  await nothingIsWrong(owner);
  assert.deepEqual(shown.filter((text) => text.includes("Undo")), []);
  await owner.leave();
});

test("what a process left on the port in a session of its own is no reason not to start", async () => {
  await runsBy("setsid npm run --silent dev; sleep 1000");
  const { run } = await now();
  await set.computer.nacre("process", "restart", "runtime");
  await isAnother(run);
  assert.match(String(await set.computer.nacre("logs", "runtime")), /ends process \d+ \(.*\), which an earlier run left on port 5173/);
});
