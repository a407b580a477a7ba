// Writes src/api/schema.ts: the types of docs/openapi.json. With --check, fails when it is not current.

import { readFile, writeFile } from "node:fs/promises";
import openapi, { astToString } from "openapi-typescript";

const here = new URL("../", import.meta.url);
const target = new URL("src/api/schema.ts", here);
const document = JSON.parse(await readFile(new URL("../docs/openapi.json", here), "utf8"));

// Calls are written out where they are made; their bodies and answers are what has to agree.
const ast = await openapi({ openapi: document.openapi, info: document.info, paths: {}, components: document.components });
const text = `// Written by \`npm run api\` from docs/openapi.json.\n\n${astToString(ast)}`;

if (process.argv.includes("--check")) {
  const found = await readFile(target, "utf8").catch(() => "");
  if (found !== text) {
    console.error("src/api/schema.ts is not what docs/openapi.json says: run `npm run api` in shell/");
    process.exit(1);
  }
} else {
  await writeFile(target, text);
}
