// The control page, and what a page of a sandbox cannot do to it though it has the same origin.

import assert from "node:assert/strict";
import { test } from "node:test";
import { stage } from "./stage.js";

const APP = `
  import { createServer } from "node:http";
  import { readFileSync } from "node:fs";
  createServer((request, response) => {
    if (request.url.endsWith(".js")) {
      response.setHeader("content-type", "text/javascript");
      return response.end("self.addEventListener('fetch', () => {});");
    }
    response.setHeader("content-type", "text/html");
    response.setHeader("cross-origin-opener-policy", "same-origin");
    response.end("<!doctype html><title>App</title><h1>" + readFileSync("words", "utf8") + "</h1>");
  }).listen(process.env.PORT, "127.0.0.1");`;

const set = stage(async (computer) => {
  const quoted = APP.replaceAll("'", "'\\''");
  await computer.exec(`echo -n one > words && printf %s '${quoted}' > app.mjs`);
  await computer.exec(`printf '[runtime]\\ncommand = "node app.mjs"\\nport = 3000\\nready = "/"\\n' > nacre.toml`);
});

/** Somebody with a session, on the app of the live sandbox once it is up. */
async function owner() {
  const visitor = await set.arrive();
  visitor.expects(/503|404|WebSocket|ERR_/);
  await visitor.page.goto(await set.computer.signInLink());
  await shows(visitor.page, "/", "one");
  return visitor;
}

/** Loads it until the words are there: a sandbox that has just begun serves a page that waits. */
async function shows(page, path, words) {
  const url = await set.computer.url(path);
  for (let tries = 100; ; tries--) {
    await page.goto(url);
    const heading = await page.locator("h1").first().textContent();
    if (heading === words) return;
    assert.ok(tries > 0, `${path} shows "${heading}" and not "${words}"`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

test("dev is made, made live, taken back and deleted with the buttons of the page", async () => {
  const visitor = await owner();
  const { page } = visitor;
  const press = async (name, says) => {
    await page.goto(await set.computer.url("/admin/sandboxes"));
    await page.getByRole("button", { name, exact: true }).click();
    await visitor.sees("[role=status]", says);
  };
  await press("Make dev", "dev is a copy of live");
  await visitor.isAccessible();
  await visitor.picture("admin");
  for (const name of ["promote", "network", "models"]) {
    await page.goto(await set.computer.url(`/admin/sandboxes/${name}`));
    await page.locator("h1").first().waitFor();
    await visitor.isAccessible();
    await visitor.picture(`admin-${name}`);
  }
  await set.computer.nacre("exec", "-s", "dev", "--", "sh", "-c", "echo -n two > words");
  await shows(page, "/dev/", "two");
  await press("Make dev live", "what was dev is live");
  await shows(page, "/", "two");
  await press("Roll back", "what was live before is live again");
  await shows(page, "/", "one");
  await page.goto(await set.computer.url("/admin/sandboxes"));
  await page.getByText("Reset or delete").click();
  await page.getByLabel("Remove dev and all its files").check();
  await page.getByRole("button", { name: "Delete dev" }).click();
  await visitor.sees("[role=status]", "dev is removed");
  await visitor.leave();
});

test("a script of an app changes nothing and is not shown the page", async () => {
  const visitor = await owner();
  visitor.expects(/403/);
  const status = await visitor.page.evaluate(async () => (await fetch("/admin/sandboxes/live/stop", { method: "POST" })).status);
  assert.equal(status, 403);
  const text = await visitor.page.evaluate(async () => (await fetch("/admin/sandboxes", { headers: { accept: "text/html" } })).text());
  assert.doesNotMatch(text, /token/);
  await visitor.leave();
});

test("a form that an app submits changes nothing", async () => {
  const visitor = await owner();
  visitor.expects(/403/);
  const { page } = visitor;
  await set.computer.nacre("dev", "create");
  const before = await set.computer.json("sandbox", "list");
  try {
    for (const [path, kind, fields] of [
      ["/admin/sandboxes/swap", "application/x-www-form-urlencoded", {}],
      ["/admin/sandboxes/dev/reset?force=true", "text/plain", {}],
      ["/admin/sandboxes/live/stop", "multipart/form-data", {}],
      ["/admin/sandboxes/runs", "text/plain", { '{"task":"spend","x":"': '"}' }],
      ["/admin/sandboxes/page", "application/x-www-form-urlencoded", { action: "stop", name: "live", token: "" }],
    ]) {
      await shows(page, "/", "one");
      const answered = page.waitForResponse((response) => response.request().method() === "POST");
      await page.evaluate(([action, enctype, values]) => {
        const form = Object.assign(document.createElement("form"), { method: "post", action, enctype });
        for (const [name, value] of Object.entries(values)) form.append(Object.assign(document.createElement("input"), { name, value }));
        document.body.append(form);
        form.submit();
      }, [path, kind, fields]);
      const answer = await answered;
      assert.ok(answer.request().isNavigationRequest());
      assert.equal(answer.status(), 403, path);
    }
    const named = ({ name, id, state }) => ({ name, id, state });
    const after = await set.computer.json("sandbox", "list");
    assert.deepEqual(after.sandboxes.map(named), before.sandboxes.map(named));
  } finally {
    await set.computer.nacre("dev", "delete", "--yes");
  }
  await visitor.leave();
});

test("an app does not read through the door of another sandbox", async () => {
  const visitor = await owner();
  visitor.expects(/403/);
  const read = (path) => visitor.page.evaluate(async (path) => (await fetch(path)).status, path);
  assert.equal(await read("/admin/sandboxes/live/door/supervisor/files/read?path=words"), 403);
  assert.equal(await read("/admin/sandboxes/live"), 200);
  const answer = await visitor.page.goto(await set.computer.url("/admin/sandboxes/live/door/"));
  assert.equal(answer.status(), 403);
  await visitor.leave();
});

test("an app has no hold of the control page that it opens", async () => {
  const visitor = await owner();
  const opened = visitor.context.waitForEvent("page");
  await visitor.page.evaluate(() => { window.other = window.open("/admin/sandboxes"); });
  const other = await opened;
  await other.getByRole("heading", { name: "Sandboxes" }).waitFor();
  assert.equal(await visitor.page.evaluate(() => window.other.closed), true, "it looks closed from there");
  assert.equal(await other.evaluate(() => window.opener), null);
  await visitor.leave();
});

test("a service worker stays in a folder of its app", async () => {
  const visitor = await owner();
  visitor.expects(/403|service worker/i);
  const register = (path) => visitor.page.evaluate(async (script) => {
    try {
      return (await navigator.serviceWorker.register(script)).scope;
    } catch (error) {
      return error.name;
    }
  }, path);
  assert.equal(await register("/sw.js"), "TypeError");
  assert.equal(await register("/admin/sw.js"), "TypeError");
  assert.equal(new URL(await register("/app/sw.js")).pathname, "/app/");
  await visitor.leave();
});
