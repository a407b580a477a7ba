// A day at the desktop: speaking with the agent, files, the timeline and the terminal.

import assert from "node:assert/strict";
import { test } from "node:test";
import { desk, script, until } from "./desktop.js";

const set = desk({
  fixtures: [
    ...script(
      "write a poem",
      [
        ["write_todos", { todos: [{ content: "Write it", status: "in_progress" }, { content: "Read it aloud", status: "pending" }] }],
        ["write_file", { path: "poem.md", content: "# Tide\n\nThe sea comes in.\n" }],
        ["run_command", { command: "for i in 1 2 3 4 5 6; do echo verse $i; sleep 0.4; done; exit 3" }],
      ],
      "The poem is in `poem.md`.",
    ),
    ...script("ask first", [["write_file", { path: "asked.txt", content: "yes\n" }]], "Written, as you allowed."),
  ],
  prepare: (computer) => computer.exec("printf 'one\\ntwo\\nthree\\n' > list.txt; mkdir -p deep/er; echo here > deep/er/note.txt"),
});

test("the agent works through a list while the connection is lost and comes back, and its turn is undone", async () => {
  const owner = await set.open("#/chat/new");
  owner.expects(/ERR_INTERNET_DISCONNECTED|WebSocket|vite/);
  await owner.says("Please write a poem");
  await owner.reads("0 of 2 done");
  await owner.context.setOffline(true);
  await new Promise((resolve) => setTimeout(resolve, 1500));
  await owner.context.setOffline(false);
  await owner.reads("The poem is in");
  await owner.reads(/exit 3/);
  assert.equal(await owner.page.locator('main [class*="prose"]', { hasText: "The poem is in" }).count(), 1, "nothing is told twice");
  await owner.picture("desktop-chat");
  assert.equal(String(await set.computer.exec("cat poem.md")).includes("The sea"), true);
  await owner.page.getByRole("button", { name: "Undo this turn" }).click();
  const sure = owner.page.getByRole("dialog").getByRole("button", { name: /^Undo/ });
  await sure.click({ timeout: 2000 }).catch(() => {});
  await until("the poem is gone", async () => String(await set.computer.exec("ls")).includes("poem.md") === false);
  await owner.leave();
});

test("in ask mode nothing happens before it is allowed, by the keyboard alone", async () => {
  const owner = await set.open("#/chat/new");
  await owner.page.getByRole("button", { name: "Ask", exact: true }).click();
  await owner.says("Now ask first");
  const question = owner.page.getByRole("alert", { name: "The agent asks" });
  await question.waitFor();
  assert.equal(String(await set.computer.exec("ls")).includes("asked.txt"), false);
  await question.getByRole("button", { name: /^Allow/ }).press("Enter");
  await owner.reads("Written, as you allowed.");
  assert.equal(String(await set.computer.exec("cat asked.txt")), "yes\n");
  await owner.leave();
});

test("a file is found, edited and saved; a change behind one's back is a conflict that loses nothing", async () => {
  const owner = await set.open("#/files/list.txt");
  // A refused save is what this is about.
  owner.expects(/412/);
  const editor = owner.page.locator(".cm-content");
  await editor.click();
  await owner.page.keyboard.press("Control+Home");
  await owner.page.keyboard.type("zero\n");
  await owner.page.keyboard.press("Control+s");
  await until("it is saved", async () => String(await set.computer.exec("head -1 list.txt")) === "zero\n");
  await owner.page.keyboard.type("mine ");
  await set.computer.exec("echo theirs >> list.txt");
  await owner.page.keyboard.press("Control+s");
  await owner.reads(/changed/i);
  assert.equal(String(await set.computer.exec("tail -1 list.txt")), "theirs\n", "what others wrote is still there");
  assert.ok((await editor.innerText()).includes("mine"), "and so is what was typed");
  await owner.picture("desktop-files");
  await owner.leave();
});

test("what a command wrote shows in the tree, and is looked at", async () => {
  const owner = await set.open("#/files");
  await set.computer.exec("echo new > fresh.txt");
  const row = owner.page.getByRole("treeitem", { name: /fresh\.txt/ });
  await row.waitFor();
  await row.click();
  await owner.page.locator(".cm-content").filter({ hasText: "new" }).waitFor();
  await owner.leave();
});

test("the timeline names who changed what, shows it, and takes it back", async () => {
  const owner = await set.open("#/timeline");
  await set.computer.exec("echo four >> list.txt; echo > gone-soon.txt");
  await owner.page.getByText("gone-soon.txt").first().click();
  await owner.page.getByText("four").first().waitFor();
  await owner.picture("desktop-timeline");
  await owner.page.getByRole("region", { name: "The moment that is open" }).getByRole("button", { name: /^Undo/ }).first().click();
  const sure = owner.page.getByRole("dialog").getByRole("button", { name: /^Undo/ });
  await sure.click({ timeout: 2000 }).catch(() => {});
  await until("both are as they were", async () => String(await set.computer.exec("ls; tail -1 list.txt")).match(/gone-soon|four/) === null);
  await owner.leave();
});

test("a terminal draws, and is the same one after the page was loaded again", async () => {
  const owner = await set.open("#/terminal");
  const screen = owner.page.locator(".xterm-screen").first();
  await screen.waitFor();
  await screen.click();
  await owner.page.keyboard.type("echo $((6 * 7)) is it; vim -u NONE list.txt || vi list.txt\n");
  await owner.page.waitForTimeout(1500);
  await owner.picture("desktop-terminal");
  await owner.page.keyboard.press("Escape");
  await owner.page.keyboard.type(":q!\n");
  const shells = async () => (await set.computer.json("ps")).commands.filter(({ state, running }) => state === "running" || running);
  const before = (await shells().catch(() => [])).length;
  await owner.page.reload();
  await owner.works();
  await owner.page.locator(".xterm-screen").first().waitFor();
  await until("what was written is there again", async () => (await owner.page.locator(".xterm-rows").first().innerText()).includes("42 is it"));
  assert.equal((await shells().catch(() => [])).length, before, "no second shell");
  await owner.leave();
});
