// The account servers of a test: the real directory and PDS, in a process of their own.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { createInterface } from "node:readline";

/** What browsers say about the account server's own pages. */
export const SERVERS_OWN = /Permissions-Policy/;
const PROGRAM = new URL("../atproto/testnet.cjs", import.meta.url).pathname;

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

export class Atmosphere {
  #process;

  static async start() {
    const atmosphere = new Atmosphere();
    const ports = [await freePort(), await freePort()].map(String);
    const options = { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, LOG_ENABLED: "false" } };
    const child = spawn(process.execPath, [PROGRAM, ...ports], options);
    atmosphere.#process = child;
    process.once("exit", () => child.kill());
    const ended = once(child, "exit").then(() => { throw new Error("the account servers did not start"); });
    const [line] = await Promise.race([once(createInterface(child.stdout), "line"), ended]);
    ended.catch(() => {});
    const { plc, pds, accounts } = JSON.parse(line);
    return Object.assign(atmosphere, { plc, pds, alice: accounts[0], mallory: accounts[1] });
  }

  async stop() {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    this.#process.kill();
    await once(this.#process, "exit");
  }
}
