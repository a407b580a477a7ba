// A model server that nobody here wrote: scripted answers in the wire formats of the providers.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const PROGRAM = fileURLToPath(new URL("node_modules/.bin/llmock", import.meta.url));

export class Aimock {
  #process;
  #folder;

  /** Only `key` opens it. */
  static async start({ fixtures, key, flags = [] }) {
    const server = new Aimock();
    server.key = key;
    server.#folder = mkdtempSync(join(tmpdir(), "nacre-aimock-"));
    const file = join(server.#folder, "fixtures.json");
    writeFileSync(file, JSON.stringify({ fixtures }));
    const words = [PROGRAM, "-p", "0", "-f", file, "--strict", "--validate-on-load", ...flags];
    const env = { ...process.env, AIMOCK_API_KEYS: key, AIMOCK_STRICT_TURN_INDEX: "1" };
    server.#process = spawn(process.execPath, words, { env, stdio: ["ignore", "pipe", "pipe"] });
    process.once("exit", () => server.#process.kill());
    server.url = await server.#listening();
    return server;
  }

  #listening() {
    return new Promise((resolve, reject) => {
      let said = "";
      const read = (piece) => {
        said += piece;
        const found = said.match(/listening on (http:\/\/[\d.]+:\d+)/);
        if (found) resolve(found[1]);
      };
      this.#process.stdout.on("data", read);
      this.#process.stderr.on("data", read);
      this.#process.once("exit", () => reject(new Error(`aimock ended: ${said}`)));
    });
  }

  /** The requests that reached it, oldest first. */
  async journal() {
    const answer = await fetch(`${this.url}/__aimock/journal`, {
      headers: { authorization: `Bearer ${this.key}` },
    });
    return answer.json();
  }

  /** Rates of faults from now on. */
  async chaos(rates) {
    const answer = await fetch(`${this.url}/__aimock/chaos`, {
      method: rates ? "POST" : "DELETE",
      headers: { authorization: `Bearer ${this.key}`, "content-type": "application/json" },
      body: rates ? JSON.stringify(rates) : undefined,
    });
    if (!answer.ok) throw new Error(`chaos: ${answer.status} ${await answer.text()}`);
  }

  stop() {
    this.#process.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
