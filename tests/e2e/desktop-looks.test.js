// How the desktop looks and behaves for everybody: light, dark, narrow, by keyboard, with a screen reader.

import assert from "node:assert/strict";
import { test } from "node:test";
import { desk, until } from "./desktop.js";

const set = desk();
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
    const wide = await owner.page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    assert.equal(wide, false, `${name} is wider than the screen`);
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
  await owner.page.keyboard.press("Control+k");
  await owner.page.keyboard.type("dark theme");
  await owner.page.keyboard.press("Enter");
  await owner.page.locator('html[data-theme="dark"]').waitFor();
  await owner.page.reload();
  await owner.works();
  assert.equal(await owner.page.evaluate("document.documentElement.dataset.theme"), "dark", "and it is remembered");
  await owner.leave();
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
