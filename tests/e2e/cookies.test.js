// Two roles, one origin, one jar: what a real browser keeps for each, and gives back.

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { stage } from "./stage.js";

// Says which cookies it was given, and sets its own and one by the session's name.
const APP = `
import http.server, os
name = open("name").read()
class App(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = (self.headers.get("cookie") or "none").encode()
        self.send_response(200)
        for cookie in ["sid=" + name, "nacre_session=stolen"]:
            self.send_header("set-cookie", cookie + "; Path=/; Max-Age=600")
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), App).serve_forever()
`;
const CONFIG = '[runtime]\ncommand = ["/usr/bin/python3", "app.py"]\nport = 5173\nready = "/"\n';

async function installApps(computer) {
  await computer.nacre("sandbox", "create", "dev", "--start");
  const folder = await mkdtemp(join(tmpdir(), "nacre-app-"));
  for (const sandbox of ["live", "dev"]) {
    const files = { name: sandbox, "app.py": APP, "nacre.toml": CONFIG };
    for (const [name, text] of Object.entries(files)) {
      await writeFile(join(folder, name), text);
      await computer.nacre("cp", join(folder, name), `${sandbox}:${name}`);
    }
  }
  await rm(folder, { recursive: true });
}

const set = stage(installApps);

test("each role has its own cookies, and none has the session or a script", async () => {
  const owner = await set.arrive();
  owner.expects(/favicon|503/);
  await owner.page.goto(await set.computer.signInLink());
  const seen = async (path) => {
    await owner.page.goto(await set.computer.url(path));
    return owner.page.innerText("body");
  };
  // Until the app is up, its place is taken by a page that says so and comes back by itself.
  const first = async (path, words) => {
    await owner.page.goto(await set.computer.url(path));
    await owner.page.getByText(words, { exact: true }).waitFor();
  };
  await first("/", /^(none|nacre_session=stolen; sid=live|sid=live; nacre_session=stolen)$/);
  await first("/dev/", /^(none|nacre_session=stolen; sid=dev|sid=dev; nacre_session=stolen)$/);

  const given = async (path) => (await seen(path)).split("; ").sort();
  assert.deepEqual(await given("/"), ["nacre_session=stolen", "sid=live"]);
  assert.deepEqual(await given("/dev/"), ["nacre_session=stolen", "sid=dev"]);
  assert.equal(await owner.page.evaluate(() => document.cookie), "");

  const jar = (await owner.context.cookies()).map(({ name, path, httpOnly }) => `${name} ${path} ${httpOnly}`);
  assert.deepEqual(jar.sort(), [
    "nacre_app_dev_nacre_session /dev/ true",
    "nacre_app_dev_sid /dev/ true",
    "nacre_app_live_nacre_session / true",
    "nacre_app_live_sid / true",
    "nacre_session / true",
  ]);
  await owner.leave();
});
