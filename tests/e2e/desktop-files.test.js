// Files at the desktop: looked at, brought in, taken out, renamed, deleted; and very many of them.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { desk, until } from "./desktop.js";

const MANY = 100_000;
const PICTURE = `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><rect width="40" height="20" fill="teal"/></svg>`;
/** Half a second of silence. */
const SOUND = "head -c 44 /dev/zero > tone.wav; python3 -c \"import wave; w = wave.open('tone.wav', 'wb'); w.setnchannels(1); w.setsampwidth(1); w.setframerate(8000); w.writeframes(bytes(4000)); w.close()\"";

/** Whether a file is there that is about to come, or just went. */
const ASKED_FOR = /404.*supervisor\/files/;

const set = desk({
  prepare: async (computer) => {
    await computer.exec(`echo '${PICTURE}' > shell.svg; ${SOUND}; mkdir -p box/inner; echo deep > box/inner/deep.txt; echo old > name.txt`);
    await computer.exec(`mkdir many && cd many && seq -f file-%06g ${MANY} | xargs touch`);
  },
});

let outside;
before(async () => { outside = await mkdtemp(join(tmpdir(), "nacre-outside-")); });
after(() => rm(outside, { recursive: true, force: true }));

/** Chooses from the menu of what is open. */
async function choose(owner, name, act) {
  await owner.page.getByRole("button", { name: `What to do with ${name}` }).last().click();
  await owner.page.getByRole("menuitem", { name: act, exact: true }).click();
}

/** Drops files and folders of this machine on a place, as from a file manager. */
async function drop(owner, place, files) {
  const box = await place.boundingBox();
  const input = await owner.context.newCDPSession(owner.page);
  const at = { x: box.x + box.width / 2, y: box.y + box.height / 2, data: { items: [], files, dragOperationsMask: 1 } };
  for (const type of ["dragEnter", "dragOver", "drop"]) await input.send("Input.dispatchDragEvent", { type, ...at });
}

async function download(owner, act) {
  const [file] = await Promise.all([owner.page.waitForEvent("download"), act()]);
  return { name: file.suggestedFilename(), path: await file.path() };
}

test("a picture, a document and a sound are shown as what they are", async () => {
  const owner = await set.open("#/files/shell.svg");
  owner.expects(ASKED_FOR);
  await owner.reads("40 × 20");
  const printer = await owner.context.newPage();
  await printer.setContent("<h1>A page to keep</h1>");
  await writeFile(join(outside, "kept.pdf"), await printer.pdf());
  await printer.close();
  await owner.goes("Files");
  await drop(owner, owner.page.getByRole("tree", { name: "Files" }), [join(outside, "kept.pdf")]);
  const answer = owner.page.waitForResponse((response) => response.url().includes("kept.pdf") && response.headers()["content-type"] === "application/pdf");
  await owner.page.getByRole("treeitem", { name: /^kept\.pdf/ }).click();
  assert.equal((await answer).status(), 200);
  await owner.page.locator('iframe[title="kept.pdf"]').waitFor();
  await owner.page.waitForTimeout(1500);
  await owner.picture("desktop-files-pdf");

  await owner.page.getByRole("treeitem", { name: /^tone\.wav/ }).click();
  const sound = owner.page.locator("audio");
  await until("the sound can be played", () => sound.evaluate((player) => player.duration === 0.5));
  await owner.leave();
});

test("a file and a folder are dropped, and what is there already is asked about", async () => {
  const owner = await set.open("#/files/box");
  owner.expects(ASKED_FOR);
  await mkdir(join(outside, "album/empty"), { recursive: true });
  await mkdir(join(outside, "album/2026"), { recursive: true });
  await writeFile(join(outside, "album/2026/shore.txt"), "a shore\n");
  await writeFile(join(outside, "one.txt"), "one\n");
  const place = owner.page.getByText("Drop files here");
  await drop(owner, place, [join(outside, "album"), join(outside, "one.txt")]);
  await until("all of it is there", async () => String(await set.computer.exec("cd box; cat one.txt album/2026/shore.txt; ls -d album/empty")) === "one\na shore\nalbum/empty\n");

  await writeFile(join(outside, "one.txt"), "another one\n");
  await drop(owner, place, [join(outside, "one.txt")]);
  const question = owner.page.getByRole("dialog", { name: "one.txt is there already" });
  await question.getByRole("button", { name: "Replace" }).click();
  await until("it is replaced", async () => String(await set.computer.exec("cat box/one.txt")) === "another one\n");
  await owner.leave();
});

test("a file is downloaded as it is, and a folder as an archive", async () => {
  const owner = await set.open("#/files/name.txt");
  const file = await download(owner, () => choose(owner, "name.txt", "Download"));
  assert.equal(file.name, "name.txt");
  assert.equal(await readFile(file.path, "utf8"), "old\n");
  await owner.page.goto(await set.computer.url("/#/files/box"));
  const folder = await download(owner, () => choose(owner, "box", "Download as tar"));
  assert.equal(folder.name, "box.tar");
  assert.match(String(execFileSync("tar", ["-tf", folder.path])), /inner\/deep\.txt/);
  await owner.leave();
});

test("a file is renamed and deleted, and each is taken back by one click", async () => {
  const owner = await set.open("#/files/name.txt");
  owner.expects(ASKED_FOR);
  await choose(owner, "name.txt", "Rename or move");
  await owner.page.keyboard.type("title");
  await owner.page.keyboard.press("Enter");
  await owner.reads("name.txt is now title.txt.");
  await owner.page.getByRole("heading", { name: "title.txt" }).waitFor();
  await owner.page.getByRole("button", { name: "Undo", exact: true }).click();
  await until("it has its old name", async () => String(await set.computer.exec("ls")).includes("name.txt"));

  await owner.page.goto(await set.computer.url("/#/files/box/inner"));
  await choose(owner, "inner", "Delete");
  await owner.reads("inner is deleted.");
  assert.equal(String(await set.computer.exec("ls box")).includes("inner"), false);
  await owner.page.getByRole("button", { name: "Undo", exact: true }).last().click();
  await until("it is back", async () => String(await set.computer.exec("cat box/inner/deep.txt 2>&1 || true")) === "deep\n");
  await owner.leave();
});

/** Puts a word in place of another, as an editor does that keeps the old file until the new one is written. */
const vim = (file, from, into) => set.computer.exec(`vim -u NONE -i NONE -es -c 'set writebackup backupcopy=no' -c '%s/${from}/${into}/' -c wq ${file}`);

test("a file that is open stays open when vim saves it, with what was typed and not saved; a move is followed", async () => {
  await set.computer.exec("printf 'one\\nlast\\n' > edited.txt");
  const owner = await set.open("#/files/edited.txt");
  owner.expects(ASKED_FOR);
  const editor = owner.page.locator(".cm-content");
  const reads = (words) => until(`the editor reads ${words}`, async () => (await editor.innerText()).includes(words));
  await reads("one");
  await vim("edited.txt", "one", "two");
  await reads("two");
  assert.match(owner.page.url(), /#\/files\/edited\.txt$/);

  await editor.click();
  await owner.page.keyboard.press("Control+End");
  await owner.page.keyboard.type("mine");
  await vim("edited.txt", "two", "three");
  await owner.reads("was changed by");
  assert.match(owner.page.url(), /#\/files\/edited\.txt$/);
  await reads("mine");
  await owner.page.getByRole("button", { name: "Take theirs" }).click();
  await reads("three");

  await set.computer.exec("mv edited.txt moved.txt");
  await owner.page.getByRole("heading", { name: "moved.txt" }).waitFor();
  await reads("three");
  await owner.leave();
});

test("a conflict is looked at from both sides, and mine is kept where I say so", async () => {
  await set.computer.exec("echo base > both.txt");
  const owner = await set.open("#/files/both.txt");
  owner.expects(/412/);
  await owner.page.locator(".cm-content").click();
  await owner.page.keyboard.press("Control+Home");
  await owner.page.keyboard.type("mine ");
  await set.computer.exec("echo theirs > both.txt");
  await owner.page.getByRole("button", { name: "Look at both" }).click();
  const both = owner.page.getByRole("dialog", { name: "Two versions of both.txt" });
  for (const side of ["theirs", "mine base"]) await both.locator(".cm-content").filter({ hasText: side }).waitFor();
  await owner.picture("desktop-files-conflict");
  await both.getByRole("button", { name: /mine/i }).click();
  await until("mine is saved", async () => String(await set.computer.exec("cat both.txt")) === "mine base\n");
  await owner.leave();
});

test("a file that a command wrote has a badge that names the command", async () => {
  const owner = await set.open("#/files");
  await set.computer.exec("echo by hand > badge.txt");
  await owner.page.getByRole("treeitem", { name: /^badge\.txt.*New by .*by hand/ }).waitFor();
  await owner.leave();
});

test(`a folder of ${MANY} files opens, scrolls to its end, and holds only what is in view`, async () => {
  const owner = await set.open("#/files");
  const tree = owner.page.getByRole("tree", { name: "Files" });
  await owner.page.getByRole("treeitem", { name: /^many/ }).click();
  await owner.page.getByRole("treeitem", { name: /^file-000001/ }).waitFor();
  await tree.focus();
  await until("the last file is in view", async () => {
    await owner.page.keyboard.press("End");
    return owner.page.getByRole("treeitem", { name: new RegExp(`^file-${MANY}`) }).isVisible();
  }, 60_000);
  const lines = await owner.page.getByRole("treeitem").count();
  assert.ok(lines < 100, `${lines} lines are in the page`);
  await owner.leave();
});
