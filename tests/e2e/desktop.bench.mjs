// What a person in front of the desktop waits for. Prints one JSON object; `cargo xtask bench desktop` runs it.

import { mkdtemp, readFile, rm, writeFile, cp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "./browser.js";
import { Computer } from "./computer.js";
import { until } from "./desktop.js";

const quick = process.argv.includes("--quick");
const ROUNDS = quick ? 5 : 40;
const SHELL = new URL("../../shell/", import.meta.url).pathname;
const say = (words) => process.stderr.write(`${words}\n`);
const now = () => performance.timeOrigin + performance.now();

const BREAKS = {
  "a syntax error": "echo 'export const = ;' >> shell/src/app/app.tsx",
  "a page that throws": `sed -i 's/export function App() {/&\\n  throw new Error("no frame");/' shell/src/app/app.tsx`,
  "index.html is gone": "rm shell/index.html",
  "modules are gone": "rm -rf shell/node_modules",
  "the dev server cannot start": "echo 'throw new Error(\"no start\")' > shell/vite.config.ts; pkill -x node",
  "the dev server hangs": "echo 'while (true);' > shell/vite.config.ts",
};

/** Resolves, in the page, with the time of the frame in which the variable is `value`. */
const shown = (page, value) =>
  page.evaluate(
    (wanted) =>
      new Promise((resolve, reject) => {
        const began = performance.now();
        const look = () => {
          const found = getComputedStyle(document.documentElement).getPropertyValue("--radius").trim();
          if (performance.now() - began > 10_000) return reject(new Error(`${wanted} is not shown, but ${found}`));
          if (found !== wanted) return requestAnimationFrame(look);
          requestAnimationFrame(() => resolve(performance.timeOrigin + performance.now()));
        };
        look();
      }),
    value,
  );

async function writeToPixel(page, theme, write) {
  const times = [];
  for (let round = 0; round < ROUNDS + 2; round++) {
    const value = `${10 + (round % 2)}.${round}px`;
    // Vite's own watcher, which the peer has, drops an edit that follows another within 50 ms.
    await page.waitForTimeout(300);
    const seen = shown(page, value);
    const began = now();
    await write(theme.replace(/--radius: [^;]+;/, `--radius: ${value};`));
    const took = (await seen) - began;
    if (round >= 2) times.push(took);
  }
  await write(theme);
  return times;
}

async function bareVite(browser) {
  const folder = await mkdtemp(join(tmpdir(), "nacre-vite-"));
  try {
    await cp(SHELL, folder, { recursive: true, filter: (path) => !/\/(dist|node_modules)(\/|$)/.test(path.slice(SHELL.length - 1)) });
    await cp(join(SHELL, "node_modules"), join(folder, "node_modules"), { recursive: true, verbatimSymlinks: true });
    process.env.PORT = "0";
    const { createServer } = await import(pathToFileURL(join(folder, "node_modules/vite/dist/node/index.js")).href);
    const server = await createServer({ root: folder, configFile: join(folder, "vite.config.ts"), cacheDir: join(folder, ".cache"), server: { port: 0, strictPort: false }, logLevel: "silent" });
    await server.listen();
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${server.httpServer.address().port}/`);
    await page.locator('nav[aria-label="Desktop"]').waitFor({ timeout: 60_000 });
    await page.waitForTimeout(1500);
    const place = join(folder, "src/theme.css");
    const times = await writeToPixel(page, await readFile(place, "utf8"), (text) => writeFile(place, text));
    await page.close();
    await server.close();
    return times;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function signedIn(browser, computer) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  await page.goto(await computer.signInLink());
  return page;
}

const works = (page) => page.locator('html[data-nacre="source"] nav[aria-label="Desktop"]').waitFor({ timeout: 90_000 });

async function broken(browser, computer, command) {
  const page = await signedIn(browser, computer);
  await page.goto(await computer.url("/#/settings"));
  await works(page);
  await page.waitForTimeout(500);
  await computer.exec(command);
  const began = now();
  const undo = page.getByRole("button", { name: /^Undo/ }).first();
  await undo.waitFor();
  const offered = now() - began;
  const clicked = now();
  await undo.click();
  await works(page);
  await until("it is healthy", async () => (await computer.json("desktop", "status")).ok, 60_000);
  const done = now() - clicked;
  await page.context().close();
  return { offered, done };
}

const browser = await launch();
say("a new computer");
const began = now();
const computer = await Computer.withDesktop("");
const page = await signedIn(browser, computer);
await page.goto(await computer.url("/#/settings"));
await page.locator('nav[aria-label="Desktop"]').waitFor();
const first_page = now() - began;
await works(page);
const first_source = now() - began;
await page.waitForTimeout(2000);

say(`write to pixel: ${ROUNDS} rounds`);
const theme = String(await computer.exec("cat shell/src/theme.css"));
const write_to_pixel = await writeToPixel(page, theme, (text) =>
  page.evaluate(async (body) => {
    const headers = { "content-type": "application/octet-stream" };
    const { ok, status } = await fetch("supervisor/files/content?path=/workspace/shell/src/theme.css", { method: "PUT", body, headers });
    if (!ok) throw new Error(`writing the theme: ${status}`);
  }, text),
);
say("the same under Vite alone");
const bare_vite = await bareVite(browser);

const [undo_offered, undo_done] = [{}, {}];
for (const [way, command] of Object.entries(BREAKS)) {
  say(`broken: ${way}`);
  const { offered, done } = await broken(browser, computer, command);
  undo_offered[way] = offered;
  undo_done[way] = done;
}

say("first load");
const built = await signedIn(browser, computer);
await built.goto(await computer.url("/supervisor/desktop/#/settings"), { waitUntil: "domcontentloaded" });
const html = await built.content();
const named = [...html.matchAll(/(?:src|href)="([^"]*\/assets\/[^"]+\.js)"/g)].map(([, path]) => path);
let first_load_bytes = 0;
for (const path of new Set(named)) {
  first_load_bytes += await built.evaluate(async (url) => {
    const response = await fetch(url, { cache: "reload" });
    await response.arrayBuffer();
    const [entry] = performance.getEntriesByName(new URL(url, location.href).href).slice(-1);
    return entry.encodedBodySize;
  }, path);
}
await browser.close();
await computer.stop();
process.stdout.write(JSON.stringify({ write_to_pixel, bare_vite, undo_offered, undo_done, first_load_bytes, first_page, first_source }));
