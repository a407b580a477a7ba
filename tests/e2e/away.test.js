import assert from "node:assert/strict";
import { test } from "node:test";
import { stage } from "./stage.js";

const set = stage();

/** The computer runs again afterwards, whatever happened meanwhile. */
async function whileStopped(story) {
  await set.computer.nacre("sandbox", "stop", "live");
  try {
    await story();
  } finally {
    await set.computer.nacre("sandbox", "start", "live");
  }
}

test("without a session there is a page that says how to get one", async () => {
  const stranger = await set.arrive();
  await stranger.page.goto(await set.computer.url());
  assert.equal(new URL(stranger.page.url()).pathname, "/login");
  await stranger.sees("pre", "nacre login");
  await stranger.isAccessible();
  await stranger.picture("sign-in");
  await stranger.leave();
});

test("a wrong link and a used one say so, and a fresh one works", async () => {
  const link = await set.computer.signInLink();
  const owner = await set.arrive();
  await owner.page.goto(link);
  await owner.seesDesktop();
  await owner.page.goto(link);
  await owner.seesDesktop();

  const other = await set.arrive();
  other.expects(/401/);
  for (const bad of [link, await set.computer.url("/login?token=0123")]) {
    const answer = await other.page.goto(bad);
    assert.equal(answer.status(), 401);
    await other.sees("h1", "This link no longer works");
    await other.sees("pre", "nacre login");
  }
  await other.isAccessible();
  await other.picture("used-link");
  await other.page.goto(await set.computer.signInLink());
  await other.seesDesktop();
  await owner.leave();
  await other.leave();
});

test("a session that ended is told apart from a computer that stopped", async () => {
  const owner = await set.signIn();
  owner.expects(/401/);
  await owner.context.clearCookies();
  await owner.sees("#trouble", "You are signed out");
  await owner.sees("#trouble-hint", "nacre login");
  await owner.isAccessible();
  await owner.leave();
});

test("a page that is open sees its computer stop and come back", async () => {
  const owner = await set.signIn();
  owner.expects(/503|WebSocket/);
  await owner.run("echo still here");
  await owner.sees("#result", "Exit code 0");
  await whileStopped(async () => {
    await owner.sees("#state", "Not answering");
    await owner.sees("#trouble", "Your files are safe");
    await owner.sees("#output", "still here");
    await owner.sees("#uptime", "–");
    await owner.isAccessible();
    await owner.picture("stopped");
    await owner.run("echo lost");
    await owner.sees("#result", "The command was not run");
  });
  await owner.sees("#state", "Running");
  await owner.page.locator("#trouble").waitFor({ state: "hidden" });
  await owner.run("echo back again");
  await owner.sees("#output .out", "back again");
  await owner.leave();
});

test("a page opened while the computer is stopped becomes the computer's own", async () => {
  const owner = await set.signIn();
  owner.expects(/503/);
  await whileStopped(async () => {
    const answer = await owner.page.reload();
    assert.equal(answer.status(), 503);
    assert.ok(Number(answer.headers()["retry-after"]) > 0);
    await owner.sees("h1", "Your computer is not answering");
    // A page without scripts can come back by itself only in this way.
    await owner.isAccessible({ except: ["meta-refresh"] });
    await owner.picture("stopped-on-arrival");
  });
  await owner.sees("#state", "Running");
  await owner.leave();
});

test("a command that is cut off never looks as if it ended well", async () => {
  const owner = await set.signIn();
  owner.expects(/503|WebSocket/);
  await owner.run("echo begun; sleep 1000");
  await owner.sees("#output .out", "begun");
  await whileStopped(() => owner.sees('#result[data-kind="bad"]', /connection was lost|Ended by signal/));
  await owner.sees("#state", "Running");
  await owner.leave();
});

test("a page opened while the computer is stopped goes when its app begins, ready or not", async () => {
  await set.computer.exec(`printf '[runtime]\\ncommand = "sleep 1000"\\nport = 3000\\nready = "/"\\n' > nacre.toml`);
  const owner = await set.signIn();
  owner.expects(/503/);
  await whileStopped(async () => {
    await owner.page.goto(await set.computer.url("/"));
    await owner.sees("h1", "Your computer is not answering");
  });
  await owner.sees("h1", "The app is not ready");
  await set.computer.exec("rm nacre.toml");
  await owner.leave();
});
