import assert from "node:assert/strict";
import { test } from "node:test";
import { stage } from "./stage.js";

const SIZES = { wide: { width: 1280, height: 900 }, narrow: { width: 360, height: 740 } };

const set = stage((computer) => computer.exec(`
  mkdir -p photos src && echo '# Notes' > notes.md && head -c 1234567 /dev/urandom > photos/cat.jpg
  touch 'a name that is long enough to need more than one line on the screen of any telephone.txt'
  touch ${"x".repeat(200)} && ln -s notes.md latest && mkfifo pipe`));

for (const colorScheme of ["light", "dark"]) {
  for (const [name, viewport] of Object.entries(SIZES)) {
    test(`${name} and ${colorScheme}: nothing is cut off, and nobody is kept out`, async () => {
      const owner = await set.signIn({ viewport, colorScheme });
      await owner.entry("notes.md").waitFor();
      await owner.isAccessible();
      await owner.run(`ls -l; echo a warning >&2; echo ${"y".repeat(300)}; exit 2`);
      await owner.sees("#result", "Exit code 2");
      await owner.isAccessible();
      await owner.picture(`${name}-${colorScheme}`);
      const overflow = await owner.page.evaluate("document.documentElement.scrollWidth - innerWidth");
      assert.ok(overflow <= 0, `${overflow} pixels wider than the screen`);
      await owner.leave();
    });
  }
}
