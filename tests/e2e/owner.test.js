// The owner signs in with a real account at a real personal data server, and nobody else gets in.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Atmosphere } from "./atmosphere.js";
import { launch, Visitor } from "./browser.js";
import { Computer } from "./computer.js";

const set = {};

before(async () => {
  set.atmosphere = await Atmosphere.start();
  const { alice, plc } = set.atmosphere;
  set.computer = await Computer.start("--owner-did", alice.did, "--plc-url", plc);
  set.browser = await launch();
});

after(async () => {
  await set.browser?.close();
  await set.computer?.stop();
  await set.atmosphere?.stop();
});

/** Somebody at the computer's sign-in page, after asking for `path`. */
async function visitor(path = "/") {
  const someone = await Visitor.arrive(set.browser);
  await someone.page.goto(await set.computer.url(path));
  assert.equal(new URL(someone.page.url()).pathname, "/login");
  return someone;
}

async function sessions() {
  return (await set.computer.json("sessions", "list")).sessions;
}

test("the owner signs in and lands where they were going", async () => {
  const owner = await visitor("/supervisor/?from=here");
  await owner.sees("button", "Sign in as @alice.test");
  await owner.isAccessible();
  await owner.picture("owner-sign-in");
  await set.atmosphere.signIn(owner, set.atmosphere.alice);
  await set.atmosphere.authorize(owner);
  await owner.sees("#state", "Running");
  assert.equal(owner.page.url(), await set.computer.url("/supervisor/?from=here"));
  const [session, ...more] = await sessions();
  assert.deepEqual([session.method, more.length], ["account", 0]);
  owner.expects(/401|WebSocket/);
  await set.computer.nacre("sessions", "revoke", session.id);
  await owner.sees("#trouble", "You are signed out");
  await owner.leave();
});

test("another account of the same server is refused and named", async () => {
  const mallory = await visitor();
  mallory.expects(/403/);
  await set.atmosphere.signIn(mallory, set.atmosphere.mallory);
  await set.atmosphere.authorize(mallory);
  await mallory.sees("h1", "Not your computer");
  await mallory.sees("main", "@mallory.test");
  await mallory.isAccessible();
  await mallory.picture("owner-refused");
  assert.deepEqual(await sessions(), []);
  const [event] = (await set.computer.json("audit")).events;
  assert.deepEqual([event.event, event.who], ["sign_in_refused", set.atmosphere.mallory.did]);
  await mallory.page.getByRole("button", { name: "Try another account" }).click();
  await mallory.page.waitForURL(`${set.atmosphere.pds}/**`);
  await mallory.leave();
});

test("the owner says no", async () => {
  const owner = await visitor();
  owner.expects(/403/);
  await set.atmosphere.signIn(owner, set.atmosphere.alice);
  await owner.page.getByRole("button", { name: "Deny access" }).click();
  await owner.sees("h1", "You said no");
  await owner.isAccessible();
  assert.deepEqual(await sessions(), []);
  await owner.leave();
});

test("an account server that is down is said to be, and a link still lets the owner in", async () => {
  await set.atmosphere.stop();
  const owner = await visitor();
  owner.expects(/502/);
  await owner.page.getByRole("button", { name: /^Sign in/ }).click();
  await owner.sees("h1", "Your account's server does not answer");
  await owner.isAccessible();
  await owner.picture("owner-server-down");
  await owner.page.getByRole("link", { name: "recover access" }).click();
  await owner.sees("h1", "Recover access");
  await owner.page.goto(await set.computer.signInLink());
  await owner.seesDesktop();
  await owner.leave();
});
