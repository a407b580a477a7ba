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
    ...script("bear in mind", [["remember", { text: "The owner collects shells." }]], "I will bear it in mind."),
    ...script("what I collect", [["recall", { query: "what does the owner collect" }]], "You collect shells.", ["The owner collects shells"]),
    ...script(
      "publish my notes",
      [
        ["write_file", { path: "notes/shells.md", content: "# Growth\n\nA shell grows layer by layer.\n" }],
        ["publish", { path: "notes/shells.md", title: "On shells" }],
        ["knowledge_search", { query: "layer", in: "publications" }],
      ],
      "Published, and found again.",
      [undefined, "nacre:edition:", "layer by layer"],
    ),
    ...script("two changes", [["write_file", { path: "one-step.txt", content: "first\n" }], ["write_file", { path: "other-step.txt", content: "second\n" }]], "Both are there."),
    ...script("never this", [["write_file", { path: "never.txt", content: "no\n" }]], "As you wish.", ["does not want this"]),
    { match: { userMessage: "show me code" }, response: { content: "Here:\n\n```js\nconst sea = 1;\n```\n" } },
    ...script("ask first", [["write_file", { path: "asked.txt", content: "yes\n" }]], "Written, as you allowed."),
  ],
  prepare: (computer) => computer.exec("printf 'one\\ntwo\\nthree\\n' > list.txt; mkdir -p deep/er; echo here > deep/er/note.txt"),
});

test("the agent works through a list while the connection is lost and comes back, and its turn is undone", async () => {
  const owner = await set.open("#/chat/new");
  owner.expects(/ERR_INTERNET_DISCONNECTED|WebSocket|vite/);
  const line = await owner.holdsTheLine();
  await owner.page.reload();
  await owner.works();
  await owner.says("Please write a poem");
  await owner.reads("0 of 2 done");
  await until("events are followed", () => line.open.size > 0);
  await line.goesDown();
  await new Promise((resolve) => setTimeout(resolve, 1500));
  await line.comesBack();
  assert.ok(line.dropped > 0, "a line was open, and is not any more");
  await owner.reads("The poem is in");
  await until("events are followed again", () => line.opened > 0);
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

test("what is denied does not happen, and the agent goes on", async () => {
  const owner = await set.open("#/chat/new");
  await owner.page.getByRole("button", { name: "Ask", exact: true }).click();
  await owner.says("Please never this");
  await owner.page.getByRole("alert", { name: "The agent asks" }).getByRole("button", { name: /^Deny/ }).click();
  await owner.reads("As you wish.");
  await owner.reads(/^denied$/);
  assert.equal(String(await set.computer.exec("ls")).includes("never.txt"), false);
  await owner.leave();
});

test("a call unfolds to its lines, one step is undone by itself, and a turn is where a fork begins", async () => {
  const owner = await set.open("#/chat/new");
  await owner.says("Make two changes");
  await owner.reads("Both are there.");
  await owner.page.getByText(/^This conversation so far:/).first().waitFor();
  assert.match(await owner.page.locator('main [class*="meter"]').first().innerText(), /3 steps · \S+ tokens/);
  await owner.page.getByRole("button", { name: /one-step\.txt|Wr(ote|ite)/ }).first().click();
  await owner.page.getByRole("region", { name: "Changes of one-step.txt" }).or(owner.page.getByRole("region", { name: /Changes of .*one-step\.txt/ })).first().getByText("first").waitFor();
  await owner.page.getByRole("button", { name: "Undo this step" }).first().click();
  await until("one of them is gone", async () => String(await set.computer.exec("ls")).includes("one-step.txt") === false);
  assert.equal(String(await set.computer.exec("cat other-step.txt")), "second\n", "and the other is not");
  const before = owner.page.url();
  await owner.page.getByRole("button", { name: "What to do about turn 1" }).click();
  await owner.page.getByRole("menuitem", { name: "Fork from here" }).click();
  await owner.page.getByTitle("Go to the conversation that this was forked from").waitFor();
  assert.notEqual(owner.page.url(), before);
  await owner.reads("Both are there.");
  await owner.leave();
});

test("code is copied, also where the browser gives pages no clipboard", async () => {
  const owner = await set.open("#/chat/new");
  await owner.page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
  await owner.says("show me code");
  await owner.reads("const sea");
  await owner.page.getByRole("button", { name: "Copy", exact: true }).first().click();
  await owner.reads("Copied");
  await owner.page.getByRole("button", { name: /^What to do about turn/ }).click();
  await owner.page.getByRole("menuitem", { name: "Copy what it said" }).click();
  await until("both are said", async () => (await owner.page.getByText("Copied").count()) > 1);
  await owner.leave();
});

test("what is remembered is added, found and deleted by its owner", async () => {
  const owner = await set.open("#/chat/new");
  await owner.page.getByRole("button", { name: "What is remembered" }).click();
  const panel = owner.page.getByRole("dialog", { name: "What is remembered" });
  await panel.getByRole("textbox", { name: "A fact to remember" }).fill("The staging server is called otter.");
  await panel.getByRole("button", { name: "Remember" }).click();
  await panel.getByText("called otter").waitFor();
  await panel.getByRole("searchbox", { name: "Search what is remembered" }).fill("otter");
  await panel.getByRole("button", { name: /^Delete: The staging server/ }).click();
  await panel.getByRole("button", { name: "Delete for good" }).click();
  await until("it is gone", async () => JSON.stringify(await set.computer.json("memory", "list")).includes("otter") === false);
  await owner.leave();
});

test("what the agent bears in mind is known in the next conversation", async () => {
  const owner = await set.open("#/chat/new");
  await owner.says("Please bear in mind that I collect shells");
  await owner.reads("I will bear it in mind.");
  await owner.page.goto(await set.computer.url("/#/chat/new"));
  await owner.says("Tell me what I collect");
  await owner.reads("You collect shells.");
  const { facts } = await set.computer.json("memory", "list");
  assert.deepEqual(facts.map(({ text }) => text), ["The owner collects shells."]);
  await owner.leave();
});

test("a conversation is forked where it stands, and found by its title", async () => {
  const owner = await set.open("#/chat/new");
  for (const words of ["hello one", "hello two", "hello three", "hello four"]) {
    await owner.page.goto(await set.computer.url("/#/chat/new"));
    await owner.says(words);
    await owner.reads("Hello, I am here.");
  }
  await owner.page.keyboard.press("Control+k");
  await owner.page.keyboard.type("fork this conversation");
  await owner.page.keyboard.press("Enter");
  await owner.page.getByTitle("Go to the conversation that this was forked from").waitFor();
  await owner.page.getByRole("searchbox", { name: "Search conversations" }).fill("two");
  const listed = owner.page.getByRole("navigation", { name: "Conversations" });
  await until("only that one is listed", async () => (await listed.getByText("hello three").count()) === 0 && (await listed.getByText("hello two").count()) > 0);
  await owner.page.getByRole("searchbox", { name: "Search conversations" }).fill("am here");
  await until("what was said in them is found", async () => (await listed.getByText("Hello, I am here.").count()) >= 4);
  await owner.picture("desktop-chat-search");
  await owner.page.getByRole("searchbox", { name: "Search conversations" }).fill("nobody said that");
  await listed.getByText("Nothing was found").waitFor();
  await owner.leave();
});

test("the agent publishes a document, and finds it among what is published", async () => {
  const owner = await set.open("#/chat/new");
  await owner.says("Now publish my notes");
  // What is published is out: that is asked about in every mode.
  await owner.page.getByRole("alert", { name: "The agent asks" }).getByRole("button", { name: /^Allow/ }).click();
  await owner.reads("Published, and found again.");
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
  const moments = owner.page.getByRole("region", { name: "Moments" });
  await moments.getByText(/By “?.*echo four/).first().waitFor();
  await owner.page.getByRole("button", { name: "Redo", exact: true }).first().click();
  await until("both are there again", async () => /four/.test(String(await set.computer.exec("ls gone-soon.txt; tail -1 list.txt"))));
  await owner.leave();
});

test("two moments are compared, and a file goes back to one of them after a look at what that changes", async () => {
  const owner = await set.open("#/timeline");
  for (const words of ["first words", "second words"]) {
    await set.computer.exec(`echo ${words} > moments.txt`);
    await owner.page.getByText("moments.txt").first().waitFor();
    await owner.page.waitForTimeout(300);
  }
  const [newest, older] = (await set.computer.json("history", "moments.txt")).checkpoints.map(({ id }) => id);
  await owner.page.goto(await set.computer.url(`/#/timeline/${older}?compare=${newest}`));
  await owner.page.getByRole("heading", { name: "Compare two moments" }).waitFor();
  await owner.reads(/second words/);
  await owner.picture("desktop-compare");

  await owner.page.goto(await set.computer.url(`/#/timeline/${older}`));
  await owner.page.getByRole("button", { name: /Restore/ }).first().click();
  const dialog = owner.page.getByRole("dialog");
  await dialog.getByText("moments.txt").first().waitFor();
  assert.equal(String(await set.computer.exec("cat moments.txt")), "second words\n", "looking changes nothing");
  await dialog.getByRole("button", { name: /^Restore/ }).click();
  await until("it is as it was", async () => String(await set.computer.exec("cat moments.txt")) === "first words\n");
  await owner.leave();
});

test("a terminal draws what vim and htop draw, and is the same one after the page was loaded again", async () => {
  const owner = await set.open("#/terminal");
  const screen = owner.page.locator(".xterm-screen").first();
  const shows = (what, patience) => until(`the screen shows ${what}`, async () => what.test(await owner.page.locator(".xterm-rows").first().innerText()), patience);
  await screen.click();
  await shows(/[$#]/);
  await owner.page.keyboard.type("echo $((6 * 7)) is it; printf 'first line\\nsecond line\\n' > verse.txt\n");
  await shows(/42 is it/);

  await owner.page.keyboard.type("vim -u NONE verse.txt\n");
  await shows(/first line\s*second line\s*~\s*~/);
  await owner.page.keyboard.type("othird line");
  await shows(/first line\s*third line\s*second line/);
  await owner.picture("desktop-terminal-vim");
  await owner.page.keyboard.press("Escape");
  await owner.page.keyboard.type(":wq\n");
  await until("vim has written", async () => String(await set.computer.exec("cat verse.txt")) === "first line\nthird line\nsecond line\n");

  await owner.page.keyboard.type("htop\n");
  await shows(/Mem\[[^]*PID[^]*F10\s*Quit/);
  await owner.picture("desktop-terminal-htop");
  await owner.page.keyboard.type("q");
  await shows(/42 is it/);

  // More than a screen, and what is shown last at its end.
  await owner.page.keyboard.type("seq -f 'line %g' 300; echo all $((300 / 3))\n");
  await shows(/line 300\s*all 100/);
  await owner.page.keyboard.press("Shift+PageUp");
  const shells = async () => (await set.computer.json("ps")).length;
  const before = await shells();
  await owner.page.reload();
  await owner.works();
  await shows(/line 300\s*all 100/);
  assert.equal(await shells(), before, "no second shell");
  await screen.hover();
  await until("what was above the screen is there", async () => {
    await owner.page.mouse.wheel(0, -2000);
    return /line 1\s*line 2\s/.test(await owner.page.locator(".xterm-rows").first().innerText());
  });

  await owner.page.getByRole("button", { name: "New terminal" }).click();
  await until("there are two tabs", async () => (await owner.page.getByRole("tab").count()) === 2);
  await until("and two shells", async () => (await shells()) === before + 1);
  await owner.leave();
});
