import { expect, test } from "vitest";
import { numbered, readMessage, withFiles } from "./message";

test("a message with files is read as it was sent", () => {
  for (const [text, files] of [["look", ["/workspace/uploads/a b.png"]], ["", ["/workspace/uploads/a", "/workspace/uploads/b"]], ["two\n\nparts", []]] as const) {
    expect(readMessage(withFiles(text, files))).toEqual({ text, files });
  }
});

test("a message that only looks like it is text", () => {
  for (const message of ["Attached files:\n- a\nand more", "see Attached files:\n- a", "Attached files:"]) {
    expect(readMessage(message)).toEqual({ text: message, files: [] });
  }
});

test("a name that is taken gets a number before its ending", () => {
  const names = (name: string) => [numbered(name, 1), numbered(name, 2)];
  expect(names("a.png")).toEqual(["a.png", "a-2.png"]);
  expect(names("a.tar.gz")).toEqual(["a.tar.gz", "a-2.tar.gz"]);
  expect(names("Makefile")).toEqual(["Makefile", "Makefile-2"]);
  expect(names("../.x/y")[0]).toBe("_.x_y");
  expect(numbered("..", 1)).toBe("file");
});
