// The official SDKs for Python: once from outside, once inside a sandbox with nothing but its variables.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { test } from "node:test";
import { calls, stage } from "./stage.js";

const set = stage();
const SCRIPT = fileURLToPath(new URL("clients.py", import.meta.url));
const STEPS = 11;

test("every wire format works from Python", async () => {
  const python = process.env.NACRE_PYTHON;
  assert.ok(python, "NACRE_PYTHON names no Python; `cargo xtask test` sets it");
  const token = await set.token();
  const { stdout } = await promisify(execFile)(python, [SCRIPT, set.url, token]);
  assert.equal(stdout.split("\n").filter((line) => line.startsWith("ok ")).length, STEPS, stdout);
  const all = await calls(set.computer, 9);
  for (const call of all) assert.equal(call.state, "settled", JSON.stringify(call));
});
