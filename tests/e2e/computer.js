// A computer of one's own for each file of tests: real gateway, real sandbox, own data, free port.

import { execFile, execFileSync, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const PROGRAM = process.env.NACRE_BIN;
const LARGEST_OUTPUT = 64 * 1024 * 1024;
/** No command of a test takes so long. One that hangs is named, with what the gateway said last. */
const PATIENCE = 120_000;
const LAST_WORDS = 4000;

export class Computer {
  #data;
  #config = "";
  #program = [PROGRAM];
  #stopped = false;
  #seed = "false"; // Most tests begin with an empty workspace.

  /** `options` are those of `nacre up`. */
  static async start(...options) {
    return new Computer().#up("--listen", "127.0.0.1:0", ...options);
  }

  /** One with a nacre.toml of its own, and a desktop in its workspace unless that says otherwise. */
  static async configured(config) {
    const computer = new Computer();
    computer.#config = config;
    return computer.#up("--listen", "127.0.0.1:0");
  }

  /** One with the desktop, as people have it; on a free port unless `config` names one. */
  static async withDesktop(config = "") {
    const computer = new Computer();
    computer.#config = config;
    computer.#seed = "true";
    return computer.#up(...(/^listen = /m.test(config) ? [] : ["--listen", "127.0.0.1:0"]));
  }

  /** One that is on an internet of the test's own. */
  static async startOn(internet, ...options) {
    const computer = new Computer();
    computer.#program = internet.command(PROGRAM);
    return computer.#up(...options);
  }

  async #up(...options) {
    if (!PROGRAM) throw new Error("NACRE_BIN does not name a nacre binary; `cargo xtask test` sets it");
    this.#data = await mkdtemp(join(tmpdir(), "nacre-e2e-"));
    if (this.#config) await writeFile(join(this.#data, "nacre.toml"), this.#config);
    // Also when a test is interrupted or the set-up fails: no gateway is left behind.
    process.once("exit", () => this.#stopNow());
    for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
    await this.nacre("up", "--detach", ...options);
    return this;
  }

  /** What the command printed; it fails with what the command said. */
  async nacre(...args) {
    const options = { env: this.#environment(), maxBuffer: LARGEST_OUTPUT, encoding: "buffer", timeout: PATIENCE, killSignal: "SIGKILL" };
    const [program, ...words] = this.#program;
    try {
      const { stdout } = await promisify(execFile)(program, [...words, ...args], options);
      return stdout;
    } catch (error) {
      if (!error.killed) throw error;
      const log = await readFile(join(this.#data, "gateway.log"), "utf8").catch(String);
      throw new Error(`nacre ${args.join(" ")} did not end within ${PATIENCE} ms; the gateway said: ${log.slice(-LAST_WORDS)}`);
    }
  }

  /** What the command complained about, and its code. */
  async failed(...args) {
    try {
      await this.nacre(...args);
    } catch ({ code, stderr }) {
      return { code, stderr: String(stderr) };
    }
    throw new Error(`nacre ${args.join(" ")} did not fail`);
  }

  /** The command under way. */
  spawn(...args) {
    const [program, ...words] = this.#program;
    return spawn(program, [...words, ...args], { env: this.#environment() });
  }

  /** The same with something on its standard input. */
  piped(input, ...args) {
    return execFileSync(PROGRAM, args, { env: this.#environment(), input, maxBuffer: LARGEST_OUTPUT, timeout: PATIENCE });
  }

  async json(...args) {
    return JSON.parse(await this.nacre(...args, "--json"));
  }

  /** Output of a script in the live sandbox, as bytes. */
  exec(script) {
    return this.nacre("exec", "--", "sh", "-c", script);
  }

  async signInLink() {
    return (await this.json("login")).url;
  }

  async url(path = "/") {
    return new URL(path, (await this.json("status")).url).href;
  }

  /** Where the live sandbox keeps its own, on the host. */
  async sandboxFolder() {
    const { sandboxes } = await this.json("sandbox", "list");
    return join(this.#data, "sandboxes", sandboxes.find(({ name }) => name === "live").id, "data");
  }

  async stop() {
    await this.nacre("down");
    this.#stopped = true;
    await rm(this.#data, { recursive: true, force: true });
  }

  #stopNow() {
    if (this.#stopped) return;
    try {
      const [program, ...words] = this.#program;
      execFileSync(program, [...words, "down"], { env: this.#environment(), stdio: "ignore", timeout: PATIENCE / 4 });
    } catch {
      // It never came up, or is down already.
    }
    rmSync(this.#data, { recursive: true, force: true });
  }

  #environment() {
    return { ...process.env, NACRE_DATA: this.#data, NACRE_DESKTOP_SEED: this.#seed };
  }
}
