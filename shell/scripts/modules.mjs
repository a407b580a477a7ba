// Before Vite starts: is there what it needs? Modules that came with Nacre are linked, others installed.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, lstatSync, readFileSync, readlinkSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";

/** What every sandbox of the machine shares; elsewhere only in a test. */
const SHARED = process.env.NACRE_SHARED ?? "/opt/nacre";

const here = join(import.meta.dirname, "..");
const modules = join(here, "node_modules");
const lock = readFileSync(join(here, "package-lock.json"));
const id = createHash("sha256").update(lock).digest("hex").slice(0, 16);
const shared = join(SHARED, `desktop-${id}`, "node_modules");

const whole = () => existsSync(join(modules, "vite", "package.json"));
const isLink = lstatSync(modules, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
const target = isLink ? readlinkSync(modules) : null;
/** What came with Nacre for another lock file than this one. A folder or a link of the owner's is theirs. */
const isOther = target !== null && target.startsWith(join(SHARED, "desktop-")) && target !== shared;

function link(to) {
  rmSync(modules, { force: true });
  symlinkSync(to, modules);
}

/** Not `npm ci`: a package.json that was edited by hand, and its lock file not, should start all the same. */
function install() {
  console.log("installing what the desktop needs");
  execFileSync("npm", ["install", "--no-save", "--prefer-offline", "--no-audit", "--no-fund"], { cwd: here, stdio: "inherit" });
}

if (!whole() || isOther) {
  if (isLink) rmSync(modules);
  if (existsSync(shared) && !existsSync(modules)) {
    link(shared);
  } else {
    try {
      install();
    } catch (error) {
      if (!isOther) throw error;
      // Without a network, say: modules of another version are better than none.
      rmSync(modules, { recursive: true, force: true });
      link(target);
      if (!whole()) throw error;
      console.error(`cannot install what package-lock.json names (${error.message}); goes on with ${target}`);
    }
  }
}
