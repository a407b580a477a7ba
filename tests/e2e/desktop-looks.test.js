// How the desktop looks and behaves for everybody: light, dark, narrow, by keyboard, with a screen reader.

import assert from "node:assert/strict";
import { test } from "node:test";
import { desk, until } from "./desktop.js";

const set = desk({ prepare: (computer) => computer.exec("mkdir -p deep/er; echo here > deep/er/tide-note.txt") });
const PAGES = ["Chat", "Files", "Timeline", "Terminal", "Live and dev", "Runs", "Spending", "Network", "Settings"];

for (const colorScheme of ["light", "dark"]) {
  test(`every page is accessible and fits, ${colorScheme}`, async () => {
    const owner = await set.open("#/chat", { colorScheme });
    for (const name of PAGES) {
      await owner.goes(name);
      await owner.page.waitForTimeout(800);
      await owner.isWell();
      await owner.picture(`desktop-${name.toLowerCase().replaceAll(" ", "-")}-${colorScheme}`);
    }
    await owner.leave();
  });
}

test("at 360 pixels and by touch every page can be reached and fits", async () => {
  const owner = await set.open("#/chat", { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
  for (const name of PAGES) {
    const link = owner.page.getByRole("navigation", { name: "Desktop" }).getByRole("link", { name, exact: true });
    if (!(await link.isVisible())) await owner.page.getByRole("button", { name: "More pages" }).tap();
    await link.tap();
    await owner.page.getByRole("main", { name }).waitFor();
    await owner.page.waitForTimeout(600);
    await owner.isWell();
    await owner.picture(`desktop-${name.toLowerCase().replaceAll(" ", "-")}-narrow`);
  }
  await owner.leave();
});

test("with the keyboard alone: every page by two keys, everything else by name", async () => {
  const owner = await set.open("#/chat");
  await owner.page.locator("#main").focus();
  for (const [key, name] of [["f", "Files"], ["t", "Timeline"], ["r", "Live and dev"], ["u", "Runs"], ["m", "Spending"], ["n", "Network"], [",", "Settings"]]) {
    await owner.page.keyboard.press("g");
    await owner.page.keyboard.press(key);
    await owner.page.getByRole("main", { name }).waitFor();
    await owner.page.locator("#main").focus();
  }
  // From the chat to the terminal and back, and then a word with the agent.
  for (const [key, name] of [["s", "Terminal"], ["c", "Chat"]]) {
    await owner.page.locator("#main").focus();
    await owner.page.keyboard.press("g");
    await owner.page.keyboard.press(key);
    await owner.page.getByRole("main", { name }).waitFor();
  }
  await owner.page.keyboard.press("Control+k");
  await owner.page.keyboard.type("new conversation");
  await owner.page.keyboard.press("Enter");
  await until("the message can be typed", () => owner.page.evaluate(() => document.activeElement?.getAttribute("aria-label") === "Message"));
  await owner.page.keyboard.type("hello by keyboard");
  await owner.page.keyboard.press("Enter");
  await owner.reads("Hello, I am here.");

  await owner.page.keyboard.press("Control+k");
  await owner.page.keyboard.type("tide note");
  await owner.page.getByRole("option", { name: "deep/er/tide-note.txt" }).waitFor();
  await owner.picture("desktop-palette");
  await owner.page.keyboard.press("Enter");
  await owner.page.getByRole("heading", { name: "tide-note.txt" }).waitFor();

  await owner.page.locator("#main").focus();
  await owner.page.keyboard.press("Control+k");
  await owner.page.keyboard.type("dark theme");
  await owner.page.keyboard.press("Enter");
  await owner.page.locator('html[data-theme="dark"]').waitFor();
  await owner.page.reload();
  await owner.works();
  assert.equal(await owner.page.evaluate("document.documentElement.dataset.theme"), "dark", "and it is remembered");
  await owner.leave();
});

test("a page whose code does not arrive is asked for again, and nobody is blamed", async () => {
  const owner = await set.open("#/chat");
  owner.expects(/ERR_FAILED|dynamically imported module|The above error|React/);
  const code = /\/src\/pages\/usage\/usage\.tsx/;
  let asked = 0;
  await owner.page.route(code, (route) => (++asked <= 2 ? route.abort() : route.continue()));
  await owner.goes("Spending");
  await owner.page.getByRole("heading", { name: "Spending" }).waitFor();
  assert.equal(asked, 3, "by itself");

  const away = /\/src\/pages\/network\/network\.tsx/;
  await owner.page.route(away, (route) => route.abort());
  await owner.goes("Network");
  await owner.reads("This page could not be loaded");
  assert.equal(await owner.guard.count(), 0, "no change is offered to be taken back");
  await owner.isWell();
  await owner.picture("desktop-not-loaded");
  await owner.page.unroute(away);
  await owner.page.getByRole("button", { name: "Try again" }).click();
  await owner.page.getByRole("heading", { name: "Network" }).waitFor();
  await owner.leave();
});

test("what the guard says of a page that threw goes when the page is left, and when it is drawn again", async () => {
  const owner = await set.open("#/usage");
  owner.expects(/./);
  const breaks = (page, how) => set.computer.exec(how === "breaks" ? `cp shell/src/pages/${page}/${page}.tsx /tmp/kept.tsx; sed -i 's/export default function \\(\\w*\\)(.*) {/&\\n  throw new Error("drawn badly");/' shell/src/pages/${page}/${page}.tsx` : `cp /tmp/kept.tsx shell/src/pages/${page}/${page}.tsx`);
  await breaks("usage", "breaks");
  await owner.guard.waitFor();
  await owner.isWell();
  await owner.picture("desktop-guard");
  await owner.goes("Runs");
  await until("nothing is said any more", async () => (await owner.guard.count()) === 0);
  await owner.goes("Spending");
  await owner.guard.waitFor();
  await breaks("usage", "mends");
  await until("nothing is said any more", async () => (await owner.guard.count()) === 0);
  await owner.page.getByRole("heading", { name: "Spending" }).waitFor();
  await owner.leave();
});

test("a reset of the desktop is taken back as what it was, whatever was changed since", async () => {
  const owner = await set.open("#/chat");
  owner.expects(/./);
  await set.computer.exec("echo '/* mine */' >> shell/src/theme.css");
  // In the copy that came with Nacre: the other one is loaded again when all of it changes.
  await owner.page.goto(await set.computer.url("/supervisor/desktop/#/settings/desktop"));
  await owner.page.getByRole("button", { name: "Reset the desktop" }).click();
  await owner.page.getByRole("dialog").getByRole("button", { name: "Reset the desktop" }).click();
  await owner.reads("The desktop is as it came");
  await set.computer.exec("echo later > later.txt");
  await owner.page.getByRole("button", { name: "Undo", exact: true }).click();
  await owner.reads(/^Undone:/);
  assert.match(String(await set.computer.exec("tail -1 shell/src/theme.css; cat later.txt")), /mine[^]*later/);
  await owner.leave();
});

test("the rescue page keeps nobody out, light, dark and narrow", async () => {
  for (const options of [{ colorScheme: "light" }, { colorScheme: "dark" }, { viewport: { width: 360, height: 740 } }]) {
    const owner = await set.open("#/chat", options);
    await owner.page.goto(await set.computer.url("/supervisor/rescue"));
    await owner.page.getByRole("heading", { name: "What happened" }).waitFor();
    await owner.isWell();
    await owner.leave();
  }
});

test("the copy that came with Nacre serves when it is chosen, says so, and gives way again", async () => {
  const owner = await set.open("#/chat");
  owner.expects(/WebSocket|404|503|vite|ERR_/);
  await set.computer.exec("cp nacre.toml kept.toml; echo 'runtime = \"built\"' > nacre.toml");
  const copy = owner.page.locator('html[data-nacre="built"] nav[aria-label="Desktop"]');
  await until("the copy is served", () => owner.page.reload().then(() => copy.isVisible()));
  await owner.reads("as nacre.toml asks");
  await set.computer.exec("mv kept.toml nacre.toml");
  // Nobody has to load anything again.
  await owner.works();
  await owner.leave();
});
