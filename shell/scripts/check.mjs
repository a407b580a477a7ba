// What `npm run check` looks at besides types and tests: the size of a first load.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const MOST = 250_000;
const dist = join(import.meta.dirname, "..", "dist");
const page = readFileSync(join(dist, "index.html"), "utf8");
const named = [...page.matchAll(/(?:src|href)="\.\/(assets\/[^"]+\.js)"/g)].map(([, path]) => path);
if (named.length === 0) throw new Error("the built page names no script");
const size = named.reduce((sum, path) => sum + gzipSync(readFileSync(join(dist, path))).length, 0);
console.log(`first load: ${named.length} scripts, ${size} bytes of JavaScript gzipped (at most ${MOST})`);
if (size > MOST) process.exit(1);
