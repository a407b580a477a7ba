// When the page cannot help: the rescue page without JavaScript, and the desktop as it came with Nacre.

import assert from "node:assert/strict";
import { test } from "node:test";
import { healthy } from "./broken.js";
import { Visitor } from "./browser.js";
import { desk, until } from "./desktop.js";

const set = desk();

test("the rescue page shows what happened, undoes and restarts with JavaScript off", async () => {
  const visitor = await Visitor.arrive(set.browser, { javaScriptEnabled: false });
  const { page } = visitor;
  const press = (name) => page.getByRole("button", { name }).first().click();
  await page.goto(await set.computer.signInLink());
  await set.computer.exec("echo '<p>a line of mine</p>' > shell/index.html");
  await page.goto(await set.computer.url("/supervisor/rescue"));
  await page.getByRole("heading", { name: "What happened" }).waitFor();
  await page.getByText("shell/index.html").first().waitFor();
  await page.getByRole("link", { name: /^Diff/ }).first().click();
  await page.locator("pre.diff .new").filter({ hasText: "+<p>a line of mine</p>" }).waitFor();
  await visitor.picture("rescue-diff-without-javascript");
  await press(/^Undo/);
  await until("the page is back", async () => !String(await set.computer.exec("cat shell/index.html")).includes("mine"));

  const pid = async () => (await set.computer.json("process", "list")).processes.find(({ name }) => name === "runtime")?.pid;
  const before = await pid();
  await press(/^Restart/);
  await until("it is another process", async () => (await pid()) && (await pid()) !== before, 60_000);
  await healthy(set);
  await page.getByRole("link", { name: /^Log/ }).first().click();
  await page.getByText(/started as process \d+/).first().waitFor();
  assert.equal(new URL(page.url()).pathname, "/logs/runtime");
  await page.goBack();
  // A shell that depends on nothing in the workspace.
  await page.getByRole("link", { name: "The desktop as it came with Nacre" }).waitFor();
  await visitor.picture("rescue-without-javascript");
  await visitor.leave();
});

test("the desktop as it came with Nacre has a terminal when the one in the workspace is gone", async () => {
  const owner = await set.open("#/settings");
  owner.expects(/./);
  await set.computer.exec("rm -rf shell");
  await owner.page.goto(await set.computer.url("/supervisor/desktop/#/terminal"));
  await owner.page.locator('html[data-nacre="built"] nav[aria-label="Desktop"]').waitFor();
  await owner.page.locator(".xterm-screen").first().click();
  await owner.page.keyboard.type("echo $((6 * 7)) is it; ls -d /workspace/shell\n");
  const rows = () => owner.page.locator(".xterm-rows").first().innerText();
  await until("the terminal answers", async () => /42 is it[^]*No such file/.test(await rows()));
  await set.computer.nacre("desktop", "seed", "--replace");
  await healthy(set);
  await owner.leave();
});
