// The account servers of a test: the real directory and PDS, in a process of their own.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { createInterface } from "node:readline";

/** What browsers say about the account server's own pages. */
export const SERVERS_OWN = /Permissions-Policy|404.*\/favicon\.ico/;
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
    const ports = [await freePort(), await freePort()].map(String);
    return Atmosphere.#run([process.execPath, PROGRAM, ...ports], { LOG_ENABLED: "false" });
  }

  /** On an internet of the test's own; what the PDS logs goes to the file. */
  static async startOn(internet, place, log) {
    const command = internet.command(process.execPath, PROGRAM, "2582", "2583", JSON.stringify(place));
    return Atmosphere.#run(command, { NODE_EXTRA_CA_CERTS: internet.authority, LOG_ENABLED: "true", LOG_DESTINATION: log });
  }

  static async #run([program, ...args], settings) {
    const atmosphere = new Atmosphere();
    const options = { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, ...settings } };
    const child = spawn(program, args, options);
    atmosphere.#process = child;
    process.once("exit", () => child.kill());
    const ended = once(child, "exit").then(() => { throw new Error("the account servers did not start"); });
    const [line] = await Promise.race([once(createInterface(child.stdout), "line"), ended]);
    ended.catch(() => {});
    const { plc, pds, accounts } = JSON.parse(line);
    return Object.assign(atmosphere, { plc, pds, alice: accounts[0], mallory: accounts[1] });
  }

  /** From the computer's sign-in page: presses the one button and signs in at the account's own server. */
  async signIn(someone, account) {
    const { page } = someone;
    someone.expects(SERVERS_OWN);
    await page.getByRole("button", { name: /^Sign in/ }).click();
    await page.locator("input[type=password]").waitFor();
    assert.equal(new URL(page.url()).origin, this.pds);
    // The page has the owner's name in it. Nothing but the page holds anybody to that.
    await page.route("**/~api/sign-in", async (route) => {
      const body = { ...route.request().postDataJSON(), username: account.handle };
      await route.continue({ postData: JSON.stringify(body) });
    });
    await page.locator("input[type=password]").fill(account.password);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.getByText(`${account.handle} account`).first().waitFor();
  }

  authorize({ page }) {
    return page.getByRole("button", { name: "Authorize", exact: true }).click();
  }

  async stop() {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    this.#process.kill();
    await once(this.#process, "exit");
  }
}
