// An internet for one test: a network namespace in which addresses of the public internet are on
// loopback, names for them, and an authority whose certificates are for those names. Nothing leads out of it.
//
// So whoever refuses to talk to private addresses can be tested as they are, with nothing switched off.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
/** Whoever is not root here is root of a namespace in which they may do this. */
const USER = process.getuid() === 0 ? [] : ["--user"];

export class Internet {
  #folder;
  #holder;

  /** `places` maps addresses to the names that lead there. */
  static async start(places) {
    const internet = new Internet();
    internet.#folder = await mkdtemp(join(tmpdir(), "nacre-internet-"));
    await internet.#certify(Object.values(places).flat());
    await internet.#hold(places);
    return internet;
  }

  /** The program in this network, as words of a command. */
  command(...words) {
    const { pid } = this.#holder;
    const spaces = ["net", "mnt", ...USER.map(() => "user")];
    const flags = spaces.map((space) => `--${space === "mnt" ? "mount" : space}=/proc/${pid}/ns/${space}`);
    return ["nsenter", ...flags, ...USER.map(() => "--preserve-credentials"), "--", ...words];
  }

  /** What the program printed; it trusts the authority, if it is Node. */
  async run(...words) {
    const [program, ...args] = this.command(...words);
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: this.authority };
    return (await promisify(execFile)(program, args, { env })).stdout;
  }

  /** A file that runs the program in this network. */
  async wrap(program) {
    const file = join(this.#folder, basename(program));
    await writeFile(file, `#!/bin/sh\nexec ${this.command(program).join(" ")} "$@"\n`, { mode: 0o755 });
    return file;
  }

  /** A file of this name, gone with the internet. */
  file(name) {
    return join(this.#folder, name);
  }

  get authority() {
    return this.file("ca.pem");
  }

  get cert() {
    return this.file("cert.pem");
  }

  get key() {
    return this.file("key.pem");
  }

  async stop() {
    this.#holder.stdin.end();
    await once(this.#holder, "exit");
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #certify(names) {
    const openssl = (...args) => promisify(execFile)("openssl", ["req", "-x509", ...EC, ...args]);
    const [ca, caKey] = [this.authority, this.file("ca.key")];
    await openssl("-subj", "/CN=Authority of a test", "-keyout", caKey, "-out", ca);
    const alternatives = `subjectAltName=${names.map((name) => `DNS:${name}`).join(",")}`;
    const leaf = ["-CA", ca, "-CAkey", caKey, "-addext", alternatives, "-addext", "basicConstraints=critical,CA:FALSE"];
    await openssl("-subj", `/CN=${names[0]}`, ...leaf, "-keyout", this.key, "-out", this.cert);
  }

  /** Lasts as long as its standard input: also when this process is killed, it goes. */
  async #hold(places) {
    const lines = Object.entries(places).map(([address, names]) => `${address} ${names.join(" ")}`);
    await writeFile(this.file("hosts"), `127.0.0.1 localhost\n${lines.join("\n")}\n`);
    const script = [
      "ip link set lo up",
      ...Object.keys(places).map((address) => `ip address add ${address}/32 dev lo`),
      `mount --bind ${this.file("hosts")} /etc/hosts`,
      "echo ready",
      "exec cat",
    ].join(" && ");
    const flags = [...USER.map(() => "--map-root-user"), "--net", "--mount", "--propagation", "private"];
    this.#holder = spawn("unshare", [...flags, "sh", "-c", script], { stdio: ["pipe", "pipe", "inherit"] });
    const ended = once(this.#holder, "exit").then(() => { throw new Error("no network namespace can be made"); });
    await Promise.race([once(createInterface(this.#holder.stdout), "line"), ended]);
    ended.catch(() => {});
  }
}
