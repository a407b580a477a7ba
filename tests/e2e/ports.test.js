// A server that somebody started in the sandbox, in a real browser: below a path, and at a host of its own.

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch, Visitor } from "./browser.js";
import { Computer } from "./computer.js";

const PORT = 4000;
const set = {};

before(async () => {
  set.folder = await mkdtemp(join(tmpdir(), "nacre-ports-"));
  const config = join(set.folder, "nacre.toml");
  await writeFile(config, '[gateway]\nwildcard_host = "pc.localhost"\n[desktop]\nseed = false\n');
  set.computer = await Computer.start("--config", config);
  await set.computer.exec("mkdir -p app/node_modules");
  await set.computer.nacre("cp", new URL("ports.app.mjs", import.meta.url).pathname, ":app/server.mjs");
  await set.computer.nacre("cp", new URL("node_modules/ws", import.meta.url).pathname, ":app/node_modules/ws");
  await set.computer.nacre("exec", "--detach", "--", "node", "app/server.mjs", String(PORT));
  await listens();
  set.browser = await launch();
});

after(async () => {
  await set.browser?.close();
  await set.computer?.stop();
  await rm(set.folder, { recursive: true, force: true });
});

/** There is no event for it but that it is there. */
async function listens() {
  for (;;) {
    const { ports } = await set.computer.json("ports");
    const found = ports.find(({ port }) => port === PORT);
    if (found) return assert.equal(found.process.name, "node");
  }
}

async function ownHost(path = "/") {
  const url = new URL(path, await set.computer.url("/"));
  url.hostname = `${PORT}--live.pc.localhost`;
  return url;
}

/** Scripts, events and sockets of the page work, and it knows where it is. */
async function works(visitor, where) {
  await visitor.sees("#script", "loaded");
  await visitor.sees("#events", "second");
  await visitor.sees("#socket", "there and back");
  assert.equal(await visitor.text("#prefix"), where);
}

test("a port is found below its own path", async () => {
  const owner = await Visitor.signIn(set.browser, set.computer);
  await owner.page.goto(await set.computer.url(`/ports/${PORT}`));
  assert.equal(owner.page.url(), await set.computer.url(`/ports/${PORT}/`));
  await works(owner, `/ports/${PORT}`);
  await owner.page.getByRole("link", { name: "moved" }).click();
  await owner.sees("#script", "loaded");
  assert.equal(owner.page.url(), await set.computer.url(`/ports/${PORT}/?moved`), "a redirect stays below");
  await owner.leave();
});

test("a port has a host to itself, apart from the rest of the computer", async () => {
  const owner = await Visitor.signIn(set.browser, set.computer);
  await owner.page.goto((await ownHost("/?first")).href);
  assert.equal(owner.page.url(), (await ownHost("/?first")).href, "let in, and on the page that was asked for");
  await works(owner, "none");
  assert.equal(await owner.text("#cookies"), "none", "the server gets no cookie of ours");
  assert.equal(await owner.page.evaluate(() => document.cookie), "");

  const names = (await owner.context.cookies((await ownHost()).href)).map(({ name, domain, httpOnly }) => [name, domain, httpOnly]);
  assert.deepEqual(names, [["nacre_port", (await ownHost()).hostname, true]]);
  // A page there cannot read, change or listen to the computer.
  owner.expects(/CORS|ERR_FAILED|WebSocket/);
  const computer = await set.computer.url("/");
  const tried = await owner.page.evaluate(async (computer) => {
    const read = await fetch(`${computer}supervisor/health`, { credentials: "include" }).then(() => "read", () => "refused");
    const wrote = await fetch(`${computer}supervisor/files/content?path=/workspace/evil`, {
      method: "PUT", body: "evil", credentials: "include",
    }).then(() => "wrote", () => "refused");
    const heard = await new Promise((resolve) => {
      const socket = new WebSocket(`${computer.replace("http", "ws")}ws`);
      socket.onopen = () => resolve("heard");
      socket.onerror = () => resolve("refused");
    });
    return [read, wrote, heard];
  }, computer);
  assert.deepEqual(tried, ["refused", "refused", "refused"]);
  assert.equal(String(await set.computer.exec("ls")).includes("evil"), false);

  // Its own cookies are its own.
  await owner.page.goto((await ownHost("/cookie")).href);
  await owner.page.goto((await ownHost("/")).href);
  await works(owner, "none");
  assert.equal(await owner.text("#cookies"), "sid=1");
  assert.equal(await owner.page.evaluate(() => document.cookie), "sid=1");
  await owner.leave();
});

test("who is not signed in is asked to, and lands at the port", async () => {
  const visitor = await Visitor.arrive(set.browser);
  await visitor.page.goto((await ownHost("/?later")).href);
  const { pathname, origin } = new URL(visitor.page.url());
  assert.deepEqual([`${origin}/`, pathname], [await set.computer.url("/"), "/login"]);
  await visitor.page.goto(await set.computer.signInLink());
  assert.equal(visitor.page.url(), (await ownHost("/?later")).href);
  await works(visitor, "none");

  visitor.expects(/WebSocket|ERR_INCOMPLETE_CHUNKED|401|ERR_EMPTY/);
  const [session] = (await set.computer.json("sessions", "list")).sessions;
  const closed = visitor.page.evaluate(() => new Promise((resolve) => { socket.onclose = ({ code }) => resolve(code); }));
  await set.computer.nacre("sessions", "revoke", session.id);
  assert.equal(await closed, 4002, "what is open there ends with the session");
  await visitor.leave();
});
