// Before Vite starts: is there what it needs? Modules that came with Nacre are linked, others installed.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, lstatSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";

const here = join(import.meta.dirname, "..");
const modules = join(here, "node_modules");
const lock = readFileSync(join(here, "package-lock.json"));
const id = createHash("sha256").update(lock).digest("hex").slice(0, 16);
const shared = `/opt/nacre/desktop-${id}/node_modules`;

const whole = () => existsSync(join(modules, "vite", "package.json"));
const isLink = () => lstatSync(modules, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;

if (!whole()) {
  if (isLink()) rmSync(modules);
  if (existsSync(shared) && !existsSync(modules)) {
    symlinkSync(shared, modules);
  } else {
    console.log("installing what the desktop needs");
    execFileSync("npm", ["install", "--no-save", "--prefer-offline", "--no-audit", "--no-fund"], { cwd: here, stdio: "inherit" });
  }
}
