// Runs `nacre-agent` the way a sandbox does: an order on its standard input, events on its standard output.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const made = [];
process.once("exit", () => made.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

/** An empty folder that goes with the process. */
export function workspace() {
  const folder = mkdtempSync(join(tmpdir(), "nacre-agent-"));
  made.push(folder);
  return folder;
}

/** Its exit code, its events and where it worked. `env` is beside what there is. */
export async function run({ folder = workspace(), env = {}, ...order }) {
  const program = process.env.NACRE_AGENT;
  if (!program) throw new Error("NACRE_AGENT names no program; `cargo xtask test` sets it");
  const scratch = join(folder, ".scratch");
  mkdirSync(scratch);
  const whole = { workspace: folder, scratch, max_steps: 10, timeout_ms: 60_000, ...order };
  const agent = spawn(program, { cwd: folder, env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "pipe"] });
  let [stdout, stderr] = ["", ""];
  agent.stdout.on("data", (piece) => (stdout += piece));
  agent.stderr.on("data", (piece) => (stderr += piece));
  agent.stdin.end(JSON.stringify(whole));
  const code = await new Promise((resolve, reject) => {
    agent.once("error", reject);
    agent.once("close", resolve);
  });
  const lines = stdout.split("\n").filter(Boolean);
  return { code, stderr, folder, scratch, events: lines.map((line) => JSON.parse(line)) };
}

export const kinds = (events) => events.map(({ sessionUpdate }) => sessionUpdate);
