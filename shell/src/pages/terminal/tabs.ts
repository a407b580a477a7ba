// Which terminals there are. A tab is a detached shell of the sandbox; the browser only remembers the
// order and the names that somebody gave, and finds the rest in the list of commands.

import type { Of } from "../../api/client";

type Command = Of<"CommandInfo">;

export interface Tab {
  /** Of the command. */
  id: string;
  name: string;
  /** `gone` is one that this window showed and the sandbox does not know any more. */
  state: "running" | "ended" | "gone";
}

/** What this browser knows about terminals. */
export interface Remembered {
  /** In the order of the tabs. */
  tabs: readonly { id: string; label: string }[];
  /** Given by somebody. */
  names: Readonly<Record<string, string>>;
}

export const NOTHING: Remembered = { tabs: [], names: {} };

/** How our shells are told from other commands: by the label that they were started with. */
const LABEL = /^Terminal (\d+)$/;

const isOurs = ({ label, detached, tty }: Command) => detached && Boolean(tty) && LABEL.test(label ?? "");
const labelOf = ({ label }: Command) => label ?? "Terminal";

/** The tabs: those this window knows in their order, whatever became of them, then others that run. */
export function arrange(commands: readonly Command[], { tabs, names }: Remembered): Tab[] {
  const found = new Map(commands.map((command) => [command.id, command]));
  const known = tabs.map(({ id, label }): Tab => {
    const command = found.get(id);
    return { id, name: names[id] ?? label, state: !command ? "gone" : command.exit ? "ended" : "running" };
  });
  const others = commands.filter((command) => isOurs(command) && !command.exit && !tabs.some(({ id }) => id === command.id));
  return [...known, ...others.map((command): Tab => ({ id: command.id, name: names[command.id] ?? labelOf(command), state: "running" }))];
}

/** For a window that is opened again: what is gone meanwhile needs no words. */
export function current(remembered: Remembered, commands: readonly Command[]): Remembered {
  return { ...remembered, tabs: remembered.tabs.filter(({ id }) => commands.some((command) => command.id === id)) };
}

/** The label of the next one: the lowest number that none of those that run has. */
export function nextLabel(commands: readonly Command[]): string {
  const taken = new Set(commands.filter(({ exit }) => !exit).map(({ label }) => Number(LABEL.exec(label ?? "")?.[1] ?? 0)));
  let number = 1;
  while (taken.has(number)) number += 1;
  return `Terminal ${number}`;
}

/** After a shell was started: a tab at the end, or in the place of one that it takes over. */
export function added(remembered: Remembered, shown: readonly Tab[], command: Command, inPlaceOf?: string): Remembered {
  const tab = { id: command.id, label: labelOf(command) };
  const tabs = shown.map(({ id, name }) => remembered.tabs.find((known) => known.id === id) ?? { id, label: name });
  const place = tabs.findIndex(({ id }) => id === inPlaceOf);
  if (place < 0) return { ...remembered, tabs: [...tabs, tab] };
  const { [tabs[place]!.id]: name, ...names } = remembered.names;
  return { tabs: tabs.with(place, tab), names: name ? { ...names, [tab.id]: name } : names };
}

export function closed(remembered: Remembered, id: string): Remembered {
  const { [id]: _, ...names } = remembered.names;
  return { tabs: remembered.tabs.filter((tab) => tab.id !== id), names };
}

/** With an empty name it is called as before. */
export function renamed(remembered: Remembered, id: string, name: string): Remembered {
  const { [id]: _, ...names } = remembered.names;
  return { ...remembered, names: name.trim() ? { ...names, [id]: name.trim() } : names };
}

/** The tab to show when this one is closed: the one after it, or else before it. */
export function beside(tabs: readonly Tab[], id: string): Tab | undefined {
  const at = tabs.findIndex((tab) => tab.id === id);
  return tabs[at + 1] ?? tabs[at - 1];
}
