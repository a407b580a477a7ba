// Live and dev, both with hot reload, side by side; and dev promoted by a button.

import assert from "node:assert/strict";
import { test } from "node:test";
import { desk, until } from "./desktop.js";

const set = desk({ prepare: (computer) => computer.nacre("dev", "create") });

const turn = (name, from, to) => set.computer.nacre("exec", "-s", name, "--", "sed", "-i", `s/--radius: ${from}/--radius: ${to}/`, "shell/src/theme.css");

test("/ and /dev/ are two desktops with hot reload at once", async () => {
  const live = await set.open("#/chat");
  const dev = await set.open("#/chat", { mount: "/dev/" });
  await live.mark();
  await dev.mark();
  await turn("dev", "10px", "2px");
  await until("dev has it", async () => (await dev.colour("--radius")) === "2px");
  assert.equal(await live.colour("--radius"), "10px");
  await turn("live", "10px", "14px");
  await until("live has its own", async () => (await live.colour("--radius")) === "14px");
  assert.equal(await dev.colour("--radius"), "2px");
  assert.deepEqual([await live.isTheSamePage(), await dev.isTheSamePage()], [true, true]);
  await live.leave();
  await dev.leave();
});

test("dev is checked, promoted, rolled back and reset, each by a button", async () => {
  const owner = await set.open("#/roles");
  // Somebody else, who only looks on.
  const other = await set.open("#/usage");
  other.expects(/WebSocket|404|503|ERR_|vite/);
  await other.mark();
  const lines = other.countsLines();
  owner.expects(/WebSocket|404|503|ERR_|vite/);
  await owner.page.getByRole("button", { name: /^Check dev/ }).click();
  for (const check of ["The sandbox runs and is well", "Events can be followed", "What the page needs loads"]) await owner.reads(check);
  await owner.page.getByRole("button", { name: "Check again" }).waitFor({ timeout: 60_000 });
  await owner.picture("desktop-roles");
  await owner.page.getByRole("link", { name: /^Promote dev/ }).click();
  await owner.page.getByRole("button", { name: /^Promote dev/ }).click({ timeout: 90_000 });
  await owner.works();
  assert.equal(new URL(owner.page.url()).pathname, "/");
  await until("what was dev is live", async () => (await owner.colour("--radius")) === "2px", 60_000);
  await until("whoever looked on has it too", async () => (await other.colour("--radius")) === "2px", 60_000);
  // The page has a line and so has the guard. Each is made again once, and once more if the page is loaded again.
  const most = (await other.isTheSamePage()) ? 2 : 4;
  assert.ok(lines.opened >= 1 && lines.opened <= most, `${lines.opened} lines were opened`);
  await other.leave();

  await owner.page.goto(await set.computer.url("/admin/sandboxes"));
  await owner.page.getByRole("button", { name: "Roll back" }).click();
  await owner.reads("what was live before is live again");
  await owner.page.goto(await set.computer.url("/#/roles"));
  await owner.works();
  await until("what was live is live again", async () => (await owner.colour("--radius")) === "14px", 60_000);

  await set.computer.nacre("exec", "-s", "dev", "--", "touch", "only-dev.txt");
  await owner.page.goto(await set.computer.url("/admin/sandboxes"));
  await owner.page.getByLabel("Replace dev and all its files").check();
  await owner.page.getByRole("button", { name: "Reset dev" }).click();
  await owner.page.getByText(/dev is a copy of live/).waitFor({ timeout: 90_000 });
  const names = String(await set.computer.nacre("exec", "-s", "dev", "--", "ls"));
  assert.equal(names.includes("only-dev.txt"), false, names);
  await owner.leave();
});
