// What runs before the desktop's server does: which modules it gets. With a machine's shared modules, and an npm,
// of the test's own.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, cpSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";

const SCRIPT = join(import.meta.dirname, "../../shell/scripts/modules.mjs");
const [OLD, NEW] = ['{"lock": "old"}', '{"lock": "new"}'];
const set = {};

beforeEach(() => {
  set.folder = mkdtempSync(join(tmpdir(), "nacre-modules-"));
  set.shell = join(set.folder, "shell");
  mkdirSync(join(set.shell, "scripts"), { recursive: true });
  cpSync(SCRIPT, join(set.shell, "scripts/modules.mjs"));
  set.modules = join(set.shell, "node_modules");
  comes(OLD);
  symlinkSync(shared(OLD), set.modules);
});
afterEach(() => rmSync(set.folder, { recursive: true, force: true }));

const id = (lock) => createHash("sha256").update(lock).digest("hex").slice(0, 16);
const shared = (lock) => join(set.folder, "machine", `desktop-${id(lock)}`, "node_modules");

/** What came with a version of Nacre. */
function comes(lock) {
  mkdirSync(join(shared(lock), "vite"), { recursive: true });
  writeFileSync(join(shared(lock), "vite/package.json"), "{}");
}

/** Runs it with this lock file and an npm that does that. Returns whether npm was asked. */
function start(lock, npm) {
  writeFileSync(join(set.shell, "package-lock.json"), lock);
  const bin = join(set.folder, "bin");
  const asked = join(set.folder, "asked");
  mkdirSync(bin, { recursive: true });
  rmSync(asked, { force: true });
  writeFileSync(join(bin, "npm"), `#!/bin/sh\necho "$@" > ${asked}\n${npm}\n`);
  chmodSync(join(bin, "npm"), 0o755);
  const env = { ...process.env, NACRE_SHARED: join(set.folder, "machine"), PATH: `${bin}${delimiter}${process.env.PATH}` };
  execFileSync(process.execPath, [join(set.shell, "scripts/modules.mjs")], { env, stdio: "pipe" });
  return existsSync(asked);
}

const INSTALLS = "mkdir -p node_modules/vite && echo {} > node_modules/vite/package.json";
const isLink = () => lstatSync(set.modules).isSymbolicLink();

test("modules that fit their lock file stay as they are", () => {
  assert.equal(start(OLD, "exit 1"), false);
  assert.equal(readlinkSync(set.modules), shared(OLD));
});

test("another lock file gets the modules that came with it", () => {
  comes(NEW);
  assert.equal(start(NEW, "exit 1"), false);
  assert.equal(readlinkSync(set.modules), shared(NEW));
});

test("a lock file that no Nacre came with gets modules of its own", () => {
  assert.equal(start(NEW, INSTALLS), true);
  assert.equal(isLink(), false);
  // And those are the owner's: what the lock file says later is for npm to care about.
  comes(OLD);
  assert.equal(start(OLD, "exit 1"), false);
  assert.equal(isLink(), false);
});

test("without a network the modules of before are better than none", () => {
  assert.equal(start(NEW, `${INSTALLS.replaceAll("vite", "half")}; exit 1`), true);
  assert.equal(readlinkSync(set.modules), shared(OLD));
});

test("a link that leads nowhere is put right, or replaced", () => {
  rmSync(shared(OLD), { recursive: true });
  assert.equal(start(OLD, INSTALLS), true);
  assert.equal(isLink(), false);
});

test("a link of the owner's is left alone", () => {
  const own = join(set.folder, "own");
  mkdirSync(join(own, "vite"), { recursive: true });
  writeFileSync(join(own, "vite/package.json"), "{}");
  rmSync(set.modules);
  symlinkSync(own, set.modules);
  assert.equal(start(NEW, "exit 1"), false);
  assert.equal(readlinkSync(set.modules), own);
});
