// `node scripts/pack.mjs OUT`: what the programs carry of the desktop. See xtask/src/desktop.rs.
//
//   OUT/built/           the built copy
//   OUT/source.tar.gz    what is seeded into a workspace
//   OUT/modules.tar.gz   what Vite needs to serve that source
//   OUT/modules.id       which modules these are

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const here = join(import.meta.dirname, "..");
const out = resolve(process.argv[2] ?? "../target/desktop");
mkdirSync(out, { recursive: true });

const built = join(out, "built");
rmSync(built, { recursive: true, force: true });
cpSync(join(here, "dist"), built, { recursive: true });

// The same bytes for the same files, whoever packs them and when.
const steady = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX"];
const tar = (file, options, names) =>
  execFileSync("tar", ["-c", "-I", "gzip -n -6", "-f", join(out, file), ...steady, ...options, ...names], { cwd: here });

const SOURCE = ["AGENTS.md", "index.html", "package.json", "package-lock.json", "scripts/modules.mjs", "src", "tsconfig.json", "vite.config.ts"];
tar("source.tar.gz", ["--exclude=*.test.ts"], SOURCE);

// Installed in a folder of its own, without what only the checks of this repository need.
const stage = join(out, "stage");
rmSync(stage, { recursive: true, force: true });
mkdirSync(stage, { recursive: true });
for (const name of ["package.json", "package-lock.json"]) cpSync(join(here, name), join(stage, name));
execFileSync("npm", ["install", "--omit=dev", "--no-save", "--prefer-offline", "--no-audit", "--no-fund", "--silent"], { cwd: stage, stdio: "inherit" });
const UNUSED = ["*.map", "*.md", "*.d.ts", "*.d.cts", "*.d.mts", "*.flow", "*.tsbuildinfo", "*/react-dom/umd", "*/__tests__", ".package-lock.json"];
tar("modules.tar.gz", [...UNUSED.map((name) => `--exclude=${name}`), "-C", stage], ["node_modules"]);
rmSync(stage, { recursive: true });

const lock = readFileSync(join(here, "package-lock.json"));
writeFileSync(join(out, "modules.id"), createHash("sha256").update(lock).digest("hex").slice(0, 16));
console.log(`packed ${readdirSync(out).join(", ")} into ${out}`);
