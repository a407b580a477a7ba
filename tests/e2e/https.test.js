// A real browser over TLS: HTTP/2 for pages, HTTP/1.1 for sockets, and a session that only https has.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch, Visitor } from "./browser.js";
import { Computer } from "./computer.js";
import { certificate } from "./proxy.js";

const set = {};

before(async () => {
  set.folder = await mkdtemp(join(tmpdir(), "nacre-tls-"));
  const { cert, key } = await certificate(set.folder);
  set.computer = await Computer.start("--tls-cert", cert, "--tls-key", key);
  set.browser = await launch();
});

after(async () => {
  await set.browser?.close();
  await set.computer?.stop();
  await rm(set.folder, { recursive: true, force: true });
});

test("pages come over HTTP/2 and sockets work beside them", async () => {
  const owner = await Visitor.signIn(set.browser, set.computer, { ignoreHTTPSErrors: true });
  const protocol = await owner.page.evaluate(() => performance.getEntriesByType("navigation")[0].nextHopProtocol);
  assert.equal(protocol, "h2");
  // A command is a WebSocket.
  await owner.run("echo over a socket");
  await owner.sees("#output", "over a socket");

  const cookies = await owner.context.cookies();
  const { value, ...session } = cookies.find(({ name }) => name === "__Host-nacre_session");
  assert.ok(value.length >= 64 && session.secure && session.httpOnly && session.path === "/", JSON.stringify(session));
  assert.equal(await owner.page.evaluate(() => document.cookie), "");
  await owner.leave();
});

test("signing in leads to the page that was asked for", async () => {
  const visitor = await Visitor.arrive(set.browser, { ignoreHTTPSErrors: true });
  await visitor.page.goto(await set.computer.url("/supervisor/?from=here"));
  assert.match(visitor.page.url(), /\/login\?next=/);
  await visitor.page.goto(await set.computer.signInLink());
  assert.equal(visitor.page.url(), await set.computer.url("/supervisor/?from=here"));
  await visitor.sees("#state", "Running");
  await visitor.leave();
});
