// Work under way at the desktop: a turn that is stopped, files that are attached, a run that is watched, and
// what all of it cost.

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { desk, script, until } from "./desktop.js";

const set = desk({
  fixtures: [
    ...script("take your time", [["run_command", { command: "echo begun; sleep 600" }]], "Never said."),
    ...script("look at what I brought", [["run_command", { command: "cat $(find /workspace -name shell-names.txt | head -1)" }]], "Cowrie and conch.", ["cowrie"]),
    ...script("make one thing", [["run_command", { command: "for i in 1 2 3; do echo piece $i; sleep 0.3; done; echo made > made.txt" }]], "It is made."),
  ],
});

let outside;
before(async () => { outside = await mkdtemp(join(tmpdir(), "nacre-work-")); });
after(() => rm(outside, { recursive: true, force: true }));

test("a turn is stopped while its command runs, and the command with it", async () => {
  const owner = await set.open("#/chat/new");
  await owner.says("Please take your time");
  await until("the command runs", async () => (await set.computer.json("ps")).some(({ command }) => JSON.stringify(command).includes("sleep 600")));
  await owner.page.getByRole("button", { name: /^Stop/ }).click();
  await until("the command is gone", async () => !(await set.computer.json("ps")).some(({ command }) => JSON.stringify(command).includes("sleep 600")));
  await owner.page.getByRole("button", { name: /^Stop/ }).waitFor({ state: "detached" });
  await owner.leave();
});

test("a file is attached, and the agent finds it", async () => {
  const owner = await set.open("#/chat/new");
  await writeFile(join(outside, "shell-names.txt"), "cowrie\nconch\n");
  const picked = owner.page.waitForEvent("filechooser");
  await owner.page.getByRole("button", { name: "Attach files" }).click();
  await (await picked).setFiles(join(outside, "shell-names.txt"));
  await owner.page.getByRole("list", { name: "Attached files" }).getByText("shell-names.txt").waitFor();
  await owner.says("Now look at what I brought");
  await owner.reads("Cowrie and conch.");
  await owner.leave();
});

test("a one-shot run is watched while it goes on, and what it changed is shown", async () => {
  const owner = await set.open("#/runs");
  await writeFile(join(outside, "spec.txt"), "make one thing\n");
  const run = set.computer.nacre("run", join(outside, "spec.txt"));
  await owner.page.getByRole("navigation", { name: "Runs" }).getByRole("link").first().click();
  const story = owner.page.getByRole("list", { name: "What happened" });
  await story.getByText("It is made.").waitFor();
  await run;
  await owner.picture("desktop-run");
  await owner.page.getByText(/^Changes/).first().click();
  await owner.reads("made.txt");
  await owner.leave();
});

test("a run is begun on a page of the gateway, watched in the desktop, and cancelled", async () => {
  const owner = await set.open("#/runs");
  await owner.page.getByRole("link", { name: "New run" }).click();
  await owner.page.getByLabel("Task").fill("take your time");
  await owner.page.getByLabel("Most steps").fill("4");
  for (const [name, colorScheme, width] of [["dark", "dark", 1280], ["narrow", "light", 360], ["light", "light", 1280]]) {
    await owner.page.emulateMedia({ colorScheme });
    await owner.page.setViewportSize({ width, height: 900 });
    await owner.isWell();
    await owner.picture(`runs-new-${name}`);
  }
  await owner.page.getByRole("button", { name: "Begin the run" }).click();
  await owner.works();
  assert.match(owner.page.url(), /#\/runs\/run-/);
  await owner.page.getByRole("heading", { name: "take your time" }).waitFor();
  await owner.page.getByText("of 4").first().waitFor();
  await owner.picture("desktop-run-under-way");
  await owner.page.getByRole("link", { name: "Cancel this run" }).click();
  await owner.page.getByRole("button", { name: "Cancel it" }).click();
  await owner.page.getByText(/run-\w+ is cancelled/).waitFor({ timeout: 60_000 });
  const { runs } = await set.computer.json("runs");
  assert.equal(runs[0].outcome.how, "cancelled");
  await owner.leave();
});

test("what it cost stands in the chart and the tables, by day and by model", async () => {
  const owner = await set.open("#/usage");
  await owner.page.getByLabel("Use by day. Arrow keys go from day to day.").waitFor();
  await owner.page.getByRole("region", { name: "Use by model" }).getByText("gpt-4o-mini").waitFor();
  const { total } = await set.computer.json("usage");
  assert.ok(total.calls >= 5, `${total.calls} calls`);
  await owner.picture("desktop-spending");
  await owner.leave();
});
