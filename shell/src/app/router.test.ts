import { expect, test } from "vitest";
import { read, to } from "./router";

test("a place survives its address", () => {
  const address = to("files", "a b/ü?#.txt", { line: 3, none: undefined });
  const place = read(address);
  expect([place.page, place.rest, place.query.get("line"), place.query.has("none")]).toEqual(["files", "a b/ü?#.txt", "3", false]);
});

test("an odd address is a place too", () => {
  expect(read("")).toMatchObject({ page: "", rest: "" });
  expect(read("#/files/%zz")).toMatchObject({ page: "files", rest: "%zz" });
});
