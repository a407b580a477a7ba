// Ask the agent to change the desktop, and watch it change; then take it back.

import assert from "node:assert/strict";
import { test } from "node:test";
import { desk, script, until } from "./desktop.js";

const WARM = ":root {\n  --accent: rgb(200 80 20);\n  --ground: rgb(250 240 225);\n}\n";

const set = desk({
  fixtures: script(
    "warmer theme",
    [
      ["read_file", { path: "shell/src/theme.css" }],
      ["write_file", { path: "shell/src/warm.css", content: WARM }],
      ["run_command", { command: "sed -i 's#import \"./base.css\";#import \"./base.css\";\\nimport \"./warm.css\";#' shell/src/main.tsx && echo linked" }],
    ],
    "The desktop is **warmer** now.",
  ),
});

test("the agent changes the theme, and the open page follows without being loaded again", async () => {
  const owner = await set.open("#/chat/new");
  const before = await owner.colour("--accent");
  await owner.says("Give me a warmer theme, please");
  await owner.reads("warmer");
  await until("the accent is the new one", async () => (await owner.colour("--accent")).includes("200 80 20"));
  await owner.picture("desktop-warm");

  await owner.page.getByRole("button", { name: "Undo this turn" }).first().click();
  const confirm = owner.page.getByRole("dialog").getByRole("button", { name: /^Undo/ });
  if (await confirm.isVisible().catch(() => false)) await confirm.click();
  await until("the accent is the old one", async () => (await owner.colour("--accent")) === before);
  assert.equal(String(await set.computer.exec("ls shell/src/warm.css 2>&1 || true")).includes("No such file"), true);
  await owner.leave();
});

test("an edit of the theme shows in every open page within a moment, and no page is loaded again", async () => {
  const [one, two] = [await set.open("#/files"), await set.open("#/settings", { colorScheme: "dark" })];
  await one.mark();
  await two.mark();
  await set.computer.exec("sed -i 's/--radius: 10px/--radius: 3px/' shell/src/theme.css");
  for (const owner of [one, two]) {
    await until("the corner is sharper", async () => (await owner.colour("--radius")) === "3px");
    assert.equal(await owner.isTheSamePage(), true);
  }
  await set.computer.nacre("undo");
  for (const owner of [one, two]) {
    await until("the corner is round again", async () => (await owner.colour("--radius")) === "10px");
    assert.equal(await owner.isTheSamePage(), true);
    await owner.leave();
  }
});

test("of many edits of one file in a row, the last one is shown", async () => {
  const owner = await set.open("#/settings");
  for (const last of [4, 6, 8]) {
    const edits = [1, 2, 3, last].map((radius) => `sed -i 's/--radius: [^;]*/--radius: ${radius}px/' shell/src/theme.css`);
    await set.computer.exec(edits.join("; sleep 0.03; "));
    await until(`the corner is of ${last} pixels`, async () => (await owner.colour("--radius")) === `${last}px`, 5000);
  }
  await owner.leave();
});
