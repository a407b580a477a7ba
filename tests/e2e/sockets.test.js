// WebSockets from clients that are not ours, through gateway, door and supervisor to a real app.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import WebSocket from "ws";
import { Computer } from "./computer.js";

const MIB = 1024 * 1024;
const here = (name) => new URL(name, import.meta.url).pathname;
let computer, address, cookie, origin;

before(async () => {
  computer = await Computer.start();
  const folder = await mkdtemp(join(tmpdir(), "nacre-app-"));
  try {
    await cp(here("node_modules/ws"), join(folder, "node_modules/ws"), { recursive: true });
    await writeFile(join(folder, "app.mjs"), await readFile(here("sockets.app.mjs")));
    const config = '[runtime]\ncommand = ["node", "app.mjs"]\nport = 4000\nready = "/"\n';
    await writeFile(join(folder, "nacre.toml"), config);
    await computer.nacre("cp", `${folder}/.`, ":");
  } finally {
    await rm(folder, { recursive: true });
  }
  const link = await computer.signInLink();
  const welcome = await fetch(link, { redirect: "manual" });
  cookie = welcome.headers.get("set-cookie").split(";")[0];
  ({ host: address, origin } = new URL(link));
  // The supervisor answers 503 until the app is up; each answer is an event to go on from.
  for (;;) {
    const answer = await fetch(`${origin}/`, { headers: { cookie } });
    if (answer.ok && (await answer.text()) === "app") break;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
});
after(() => computer?.stop());

const open = async (path = "/echo", headers = { cookie }) => {
  const socket = new WebSocket(`ws://${address}${path}`, { origin, headers, perMessageDeflate: false });
  await once(socket, "open");
  return socket;
};
const closed = async (socket) => {
  const [code, reason] = await once(socket, "close");
  return [code, reason.toString()];
};

test("a message of 1 MiB comes back whole", async () => {
  const socket = await open();
  const message = Buffer.alloc(MIB, "nacre");
  socket.send(message);
  const [back, binary] = await once(socket, "message");
  assert.ok(binary && back.equals(message));
  socket.close();
  await closed(socket);
});

test("fragments arrive as one message", async () => {
  const socket = await open();
  for (let n = 0; n < 16; n++) socket.send(String(n % 10).repeat(1000), { fin: n === 15, binary: false });
  const [back] = await once(socket, "message");
  assert.equal(back.toString(), Array.from({ length: 16 }, (_, n) => String(n % 10).repeat(1000)).join(""));
  socket.terminate();
});

test("a ping is answered, with what it carried", async () => {
  const socket = await open();
  socket.ping("are you there");
  const [data] = await once(socket, "pong");
  assert.equal(data.toString(), "are you there");
  socket.terminate();
});

test("the app's pings reach the client", async () => {
  const socket = await open("/ping");
  socket.send("go");
  const [data] = await once(socket, "ping");
  assert.equal(data.toString(), "and you?");
  // The app says how its ping was answered.
  const [answer] = await once(socket, "message");
  assert.equal(answer.toString(), "pong: and you?");
  socket.terminate();
});

test("close codes pass both ways", async () => {
  const mine = await open("/tell-close");
  mine.close(4001, "enough");
  assert.deepEqual(await closed(mine), [4001, "enough"]);
  const other = await open("/last-close");
  other.send("go");
  const [heard] = await once(other, "message");
  assert.equal(heard.toString(), "4001 enough");
  other.terminate();
  const theirs = await open("/close");
  theirs.send("go");
  assert.deepEqual(await closed(theirs), [4321, "the app says so"]);
});

test("a client that ends its half still hears the app", async () => {
  const { hostname, port } = new URL(origin);
  const socket = connect({ host: hostname, port, allowHalfOpen: true });
  socket.write(
    `GET /half HTTP/1.1\r\nhost: ${address}\r\norigin: ${origin}\r\ncookie: ${cookie}\r\n` +
      "connection: upgrade\r\nupgrade: half\r\n\r\n",
  );
  let heard = "";
  socket.setEncoding("latin1").on("data", (data) => { heard += data; });
  await once(socket, "data");
  assert.match(heard, /^HTTP\/1\.1 101 /);
  socket.end("that is all");
  await once(socket, "end");
  assert.match(heard, /\r\n\r\nyou said: that is all$/);
});

test("an app's refusal is its own, ours comes first", async () => {
  const refusal = async (path, headers) => {
    const socket = new WebSocket(`ws://${address}${path}`, { origin, headers });
    const [, response] = await once(socket, "unexpected-response");
    return response.statusCode;
  };
  assert.equal(await refusal("/refuse", { cookie }), 418);
  assert.equal(await refusal("/refuse", {}), 401);
});

test("500 at once, all of them served", async () => {
  const sockets = await Promise.all(Array.from({ length: 500 }, () => open()));
  await Promise.all(sockets.map(async (socket, n) => {
    const answer = once(socket, "message");
    socket.send(`number ${n}`);
    assert.equal((await answer)[0].toString(), `number ${n}`);
  }));
  await Promise.all(sockets.map((socket) => { socket.close(); return closed(socket); }));
});

test("another client says the same", async () => {
  const python = process.env.NACRE_PYTHON;
  assert.ok(python, "NACRE_PYTHON does not name a Python with websockets; `cargo xtask test` sets it");
  const { stdout } = await promisify(execFile)(python, [here("sockets.py"), `ws://${address}`, origin, cookie]);
  assert.equal(stdout, "large fragments ping close crowd done\n");
});
