import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { stage } from "./stage.js";

const set = stage();
const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

async function download(owner, name) {
  const [file] = await Promise.all([owner.page.waitForEvent("download"), owner.entry(name).click()]);
  return { name: file.suggestedFilename(), bytes: await readFile(await file.path()) };
}

test("an empty folder helps to begin, and the first file appears", async () => {
  const owner = await set.signIn();
  await owner.sees("#welcome", "Nothing here yet");
  await owner.page.getByRole("button", { name: "echo hello" }).click();
  await owner.page.keyboard.press("Enter");
  await owner.entry("hello.txt").waitFor();
  assert.equal((await set.computer.exec("cat hello.txt")).toString(), "hello\n");
  await owner.leave();
});

test("what others make shows up by itself", async () => {
  const owner = await set.signIn();
  await set.computer.exec("echo from a terminal > outside.txt");
  await owner.entry("outside.txt").waitFor();
  await set.computer.exec("rm outside.txt");
  await owner.entry("outside.txt").waitFor({ state: "detached" });
  await owner.leave();
});

test("a folder is opened, reloaded, and left with the back button", async () => {
  const owner = await set.signIn();
  await set.computer.exec("mkdir -p 'a & b/c#d' && echo deep > 'a & b/c#d/deep.txt'");
  await owner.entry("a & b").click();
  await owner.entry("c#d").click();
  await owner.entry("deep.txt").waitFor();
  assert.deepEqual(await owner.page.locator("#crumbs a").allInnerTexts(), ["workspace", "a & b", "c#d"]);
  await owner.page.reload();
  await owner.entry("deep.txt").waitFor();
  await owner.page.goBack();
  await owner.entry("c#d").waitFor();
  await owner.page.getByRole("link", { name: "workspace" }).click();
  await owner.entry("a & b").waitFor();
  await owner.leave();
});

test("a download is the same bytes", async () => {
  const owner = await set.signIn();
  await set.computer.exec("head -c 3000001 /dev/urandom > random.bin");
  await owner.entry("random.bin").waitFor();
  const { name, bytes } = await download(owner, "random.bin");
  assert.equal(name, "random.bin");
  assert.equal(sha256(bytes), sha256(await set.computer.exec("cat random.bin")));
  await owner.leave();
});

test("names that are not text, or look like markup, are names like others", async () => {
  const owner = await set.signIn();
  const make = String.raw`d=$(printf 'raw\377dir') && mkdir "$d" && echo bytes > "$d/$(printf 'f\376')" && echo m > '<i>100%&+.txt'`;
  await set.computer.exec(make);
  await owner.entry("raw\ufffddir").click();
  assert.equal((await download(owner, "f\ufffd")).bytes.toString(), "bytes\n");
  await owner.page.reload();
  await owner.entry("f\ufffd").waitFor();
  await owner.page.getByRole("link", { name: "workspace" }).click();
  assert.equal((await download(owner, "<i>100%&+.txt")).bytes.toString(), "m\n");
  await owner.leave();
});

test("a link leads to a folder, to a file, or nowhere", async () => {
  const owner = await set.signIn();
  owner.expects(/404/);
  await set.computer.exec("mkdir -p box && echo in > box/inside.txt && ln -s box to-box && ln -s box/inside.txt to-file && ln -s gone to-nothing");
  await owner.entry("to-nothing").click();
  await owner.sees("#files-note", "to-nothing leads nowhere");
  assert.equal((await download(owner, "to-file")).bytes.toString(), "in\n");
  await owner.entry("to-box").click();
  await owner.entry("inside.txt").waitFor();
  await owner.leave();
});

test("a folder that goes away is said to be gone", async () => {
  const owner = await set.signIn();
  owner.expects(/404/);
  await set.computer.exec("mkdir short-lived");
  await owner.entry("short-lived").click();
  await owner.sees("#welcome", "Nothing here yet");
  await set.computer.exec("rmdir short-lived");
  await owner.sees("#files-note", "not there any more");
  await owner.leave();
});

test("a large folder is shown a part at a time", async () => {
  const owner = await set.signIn();
  await set.computer.exec("mkdir many && cd many && seq -f 'f%04g' 1 450 | xargs touch");
  await owner.entry("many").click();
  await owner.entry("f0200").waitFor();
  assert.equal(await owner.page.locator("#files li").count(), 200);
  await owner.page.getByRole("button", { name: "Show more" }).click();
  await owner.entry("f0400").waitFor();
  await owner.page.getByRole("button", { name: "Show more" }).click();
  await owner.entry("f0450").waitFor();
  await owner.page.getByRole("button", { name: "Show more" }).waitFor({ state: "hidden" });
  await owner.leave();
});

test("the page works below a prefix", async () => {
  await set.computer.nacre("sandbox", "create", "dev", "--start");
  const owner = await set.signIn();
  await owner.page.goto(await set.computer.url("/dev/supervisor/"));
  await owner.sees("#state", "Running");
  await owner.run("echo in-dev > made-below");
  await owner.sees("#result", "Exit code 0");
  await owner.entry("made-below").waitFor();
  assert.equal((await download(owner, "made-below")).bytes.toString(), "in-dev\n");
  assert.ok(!(await set.computer.exec("ls")).toString().includes("made-below"), "live has nothing of it");
  await owner.leave();
});
