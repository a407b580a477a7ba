// One computer and one browser for a file of tests; a visitor of its own for each test.

import { after, before } from "node:test";
import { launch, Visitor } from "./browser.js";
import { Computer } from "./computer.js";

/** `prepare` puts into the new computer what the tests find there. */
export function stage(prepare = async () => {}) {
  const set = {};
  before(async () => {
    set.computer = await Computer.start();
    await prepare(set.computer);
    set.browser = await launch();
    set.signIn = (options) => Visitor.signIn(set.browser, set.computer, options);
    set.arrive = (options) => Visitor.arrive(set.browser, options);
  });
  after(async () => {
    await set.browser?.close();
    await set.computer?.stop();
  });
  return set;
}
