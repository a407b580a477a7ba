// The official SDKs for Python: once from outside, once inside a sandbox with nothing but its variables.

import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { test } from "node:test";
import { calls, shown, stage } from "./stage.js";

const SCRIPT = fileURLToPath(new URL("clients.py", import.meta.url));
const STEPS = 11;
/** Of them, those that a model answers. */
const CALLS = 9;

const python = process.env.NACRE_PYTHON;
assert.ok(python, "NACRE_PYTHON names no Python; `cargo xtask test` sets it");
// The packages, and what they were installed for.
const places = execFileSync(python, ["-c", "import sys; print(sys.prefix); print(sys.base_prefix)"]);
const set = stage({ config: shown(...places.toString().trim().split("\n")) });

async function worked(stdout, before) {
  assert.equal(stdout.split("\n").filter((line) => line.startsWith("ok ")).length, STEPS, stdout);
  const all = await calls(set.computer, before + CALLS);
  for (const call of all) assert.equal(call.state, "settled", JSON.stringify(call));
  return all;
}

test("every wire format works from Python", async () => {
  const token = await set.token();
  const { stdout } = await promisify(execFile)(python, [SCRIPT, set.url, token]);
  await worked(stdout, 0);
});

test("and inside a sandbox", async () => {
  await set.computer.nacre("cp", SCRIPT, "live:/workspace/clients.py");
  // As root: what the packages were installed for may be below a home that is closed to others.
  const stdout = (await set.computer.nacre("exec", "-u", "root", "--", resolve(python), "clients.py")).toString();
  const all = await worked(stdout, CALLS);
  const own = all.slice(0, CALLS);
  assert.ok(own.every(({ sandbox }) => sandbox && sandbox === own[0].sandbox), JSON.stringify(own));
});
