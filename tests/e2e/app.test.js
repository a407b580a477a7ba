// A real dev server, run by the sandbox; and the way back when it is broken beyond starting.

import assert from "node:assert/strict";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { test } from "node:test";
import { stage } from "./stage.js";

const APP = {
  "nacre.toml": '[runtime]\ncommand = "npm run dev"\nport = 5173\nready = "/"\n',
  "package.json": JSON.stringify({ name: "app", private: true, type: "module", scripts: { dev: "vite" } }),
  "vite.config.js": 'export default { server: { port: 5173, strictPort: true } };\n',
  "index.html": '<!doctype html><title>App</title><h1 id="text"></h1><script type="module" src="/main.js"></script>\n',
  "text.js": 'export const text = "It works";\n',
  "main.js": `
    import { text } from "./text.js";
    const show = (words) => { document.getElementById("text").textContent = words; };
    show(text);
    import.meta.hot.accept("./text.js", (changed) => show(changed.text));`,
};
const NOT_THE_APPS = ["axe-core", "playwright-core", ".package-lock.json"];

/** A sandbox has no way to a registry, so the packages come from here. */
async function installApp(computer) {
  const folder = await mkdtemp(join(tmpdir(), "nacre-app-"));
  try {
    for (const [name, text] of Object.entries(APP)) await writeFile(join(folder, name), text);
    const packages = new URL("node_modules", import.meta.url).pathname;
    const filter = (path) => !NOT_THE_APPS.includes(basename(path));
    await cp(packages, join(folder, "node_modules"), { recursive: true, verbatimSymlinks: true, filter });
    await computer.nacre("cp", `${folder}/.`, ":");
  } finally {
    await rm(folder, { recursive: true });
  }
}

const set = stage(installApp);

const runtime = async () => (await set.computer.json("process", "list")).processes.find(({ name }) => name === "runtime");

/** What a page hears on `/ws`: the first message that is as wanted, from now on. */
function ear(page) {
  const waiting = new Set();
  page.on("websocket", (socket) => {
    if (new URL(socket.url()).pathname !== "/ws") return;
    socket.on("framereceived", ({ payload }) => {
      const message = JSON.parse(payload);
      for (const wait of waiting) if (wait.wanted(message)) { waiting.delete(wait); wait.resolve(message); }
    });
  });
  return (wanted) => new Promise((resolve) => waiting.add({ wanted, resolve }));
}

/** The page may be loading itself again at the same moment, which ends the reload that is asked for. */
async function loadAgain(page, tries = 10) {
  try {
    await page.reload();
  } catch (error) {
    if (tries === 1) throw error;
    await page.waitForLoadState();
    await loadAgain(page, tries - 1);
  }
}

test("an app is seen, edited, broken, and brought back by an undo", async (context) => {
  const owner = await set.arrive();
  // While the app is away its own page is told so, which is what this is about.
  owner.expects(/404|503|WebSocket|vite|ERR_/);
  const hears = ear(owner.page);
  await owner.page.goto(await set.computer.signInLink());
  await owner.page.goto(await set.computer.url("/supervisor/"));
  await owner.sees("#state", "Running");
  const app = await owner.context.newPage();
  await app.goto(await set.computer.url());
  await app.getByRole("heading", { name: "It works" }).waitFor();

  await context.test("an edit shows without a reload", async () => {
    await app.evaluate("window.sameAsBefore = true");
    await set.computer.exec(`echo 'export const text = "Edited";' > text.js`);
    await app.getByRole("heading", { name: "Edited" }).waitFor();
    assert.equal(await app.evaluate("window.sameAsBefore"), true);
  });

  await context.test("a command breaks it for good", async () => {
    const { pid } = await runtime();
    const looping = hears(({ process }) => process?.state === "backing-off");
    await owner.run(`rm package.json index.html; echo 'export default {{' > vite.config.js; kill -9 ${pid}`);
    await owner.sees("#result", "Exit code 0");
    assert.match((await looping).process.reason, /signal KILL|exit code/);
    // Vite has told its page to load again, and had no index.html to show.
    await loadAgain(app);
    await app.getByRole("heading", { name: "The app is not ready" }).waitFor();
    await owner.checkpoint("rm package.json").getByText("2 removed").waitFor({ state: "attached" });
  });

  await context.test("an undo puts the files back and the app up again", async () => {
    const restored = hears(({ type }) => type === "restored");
    await owner.press("Undo this", owner.checkpoint("rm package.json"));
    await owner.sees("#history-result", "2 brought back, 1 changed back");
    await owner.sees("#history-after", "The app is ready again");
    assert.deepEqual((await restored).processes, [{ name: "runtime", ready: true }]);
    // By itself: nobody reloads it.
    await app.getByRole("heading", { name: "Edited" }).waitFor();
    await owner.isAccessible();
    await owner.picture("app-is-back");
  });
  await app.close();
  await owner.leave();
});
