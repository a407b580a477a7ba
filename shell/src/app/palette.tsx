// Everything by name: pages, what the page offers, what the computer can do, conversations and files.

import { useQuery } from "@tanstack/react-query";
import { useEffect, useId, useMemo, useRef, useState } from "react";
import { get, type Of } from "../api/client";
import { address, gateway, role } from "../api/mount";
import { plain } from "../pages/files/paths";
import { undoLast } from "../pages/timeline/take-back";
import { classes, Key } from "../ui/basics";
import { Icon } from "../ui/icons";
import { useReturn } from "../ui/overlay";
import { useOffered, type Command } from "./commands";
import css from "./palette.module.css";
import { PAGES } from "./pages";
import { prefer } from "./preferences";
import { go, to } from "./router";

const EVERYWHERE: readonly Command[] = [
  ...PAGES.map((page) => ({ id: `page-${page.id}`, name: page.name, icon: page.icon, keys: `g ${page.key}`, act: () => go(to(page.id)) })),
  { id: "undo", name: "Undo the last change of files", icon: "undo", act: () => void undoLast() },
  { id: "new-chat", name: "New conversation", icon: "plus", act: () => go(to("chat", "new")) },
  { id: "light", name: "Light theme", icon: "sun", act: () => prefer({ theme: "light" }) },
  { id: "dark", name: "Dark theme", icon: "moon", act: () => prefer({ theme: "dark" }) },
  { id: "rescue", name: "Rescue page", icon: "warning", also: "broken repair", act: () => location.assign(address("/supervisor/rescue")) },
  {
    id: "other-role",
    name: role === "dev" ? "Go to live" : "Go to dev",
    icon: "roles",
    act: () => location.assign(role === "dev" ? gateway("/") : gateway("/dev/")),
  },
  { id: "control", name: "Sandboxes and sign-in (gateway)", icon: "settings", also: "admin sessions tokens", act: () => location.assign(gateway("/admin/sandboxes")) },
];

const MOST_COMMANDS = 40;
const MOST_FILES = 30;
/** One letter is in most names. */
const SHORTEST_NAME = 2;
/** Until somebody has stopped typing. */
const PAUSE = 120;

export function Palette({ open, onClose }: { open: boolean; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useReturn(open, dialog);
  useEffect(() => {
    if (open) dialog.current?.showModal();
  }, [open]);
  if (!open) return null;
  return (
    <dialog ref={dialog} className={css.palette} aria-label="Search and commands" onClose={onClose} onClick={(event) => event.target === dialog.current && onClose()}>
      <Finder onClose={onClose} />
    </dialog>
  );
}

function Finder({ onClose }: { onClose: () => void }) {
  const [words, setWords] = useState("");
  const [at, setAt] = useState(0);
  const list = useId();
  const found = useFound(words);
  const chosen = found[Math.min(at, found.length - 1)];
  const run = (command: Command | undefined) => {
    if (!command) return;
    onClose();
    command.act();
  };
  const press = (event: React.KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setAt((Math.min(at, found.length - 1) + step + found.length) % Math.max(1, found.length));
    }
    if (event.key === "Enter") run(chosen);
  };
  return (
    <>
      <input
        autoFocus
        className={css.input}
        placeholder="Where to, or what to do?"
        role="combobox"
        aria-label="Search and commands"
        aria-expanded="true"
        aria-controls={list}
        aria-activedescendant={chosen ? `${list}-${chosen.id}` : undefined}
        value={words}
        onChange={(event) => (setWords(event.target.value), setAt(0))}
        onKeyDown={press}
      />
      <ul id={list} role="listbox" aria-label="Results" className={css.list}>
        {found.map((command) => (
          <li
            key={command.id}
            id={`${list}-${command.id}`}
            role="option"
            aria-selected={command === chosen}
            ref={command === chosen ? (element) => element?.scrollIntoView({ block: "nearest" }) : undefined}
            className={classes(css.item, command === chosen && css.chosen)}
            onClick={() => run(command)}
          >
            <Icon name={command.icon} />
            <span className="grow cut-off">{command.name}</span>
            {command.keys && command.keys.split(" ").map((key, index) => <Key key={index}>{key}</Key>)}
          </li>
        ))}
        {found.length === 0 && <li className={css.none}>Nothing is called that.</li>}
      </ul>
    </>
  );
}

function useFound(words: string): Command[] {
  const offered = useOffered();
  const files = useFiles(words);
  const { data } = useQuery({ queryKey: ["conversations"], queryFn: () => get<Of<"ConversationList">>("/conductor/conversations"), staleTime: 10_000 });
  return useMemo(() => {
    const conversations = (data?.conversations ?? []).map(
      ({ id, title }): Command => ({ id: `c-${id}`, name: title || "Untitled conversation", icon: "chat", also: "conversation", act: () => go(to("chat", id)) }),
    );
    const all = [...offered, ...EVERYWHERE, ...conversations];
    const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = all.filter(({ name, also = "" }) => parts.every((part) => `${name} ${also}`.toLowerCase().includes(part)));
    return [...fits.slice(0, MOST_COMMANDS), ...files, ...typed(words, files)];
  }, [words, offered, data, files]);
}

/** Files whose names have all the words; more of them come in while folders are looked into. */
function useFiles(words: string): Command[] {
  const [paths, setPaths] = useState<readonly string[]>([]);
  useEffect(() => {
    setPaths([]);
    if (words.trim().length < SHORTEST_NAME) return;
    const control = new AbortController();
    const timer = setTimeout(() => {
      // The tree is the page's own, with what it knows already; it comes when it is needed.
      void import("../pages/files/tree/names")
        .then(({ findNames }) => findNames(words, MOST_FILES, control.signal, setPaths))
        .catch(() => {});
    }, PAUSE);
    return () => (clearTimeout(timer), control.abort());
  }, [words]);
  return useMemo(() => paths.map((path): Command => ({ id: `f-${path}`, name: path, icon: "file", act: () => go(to("files", path)) })), [paths]);
}

/** What looks like a path can be opened as one: what the search leaves out, or what is to be made. */
function typed(words: string, files: readonly Command[]): Command[] {
  const path = plain(words);
  if (!path || !/[./]/.test(path) || files.some(({ name }) => name === path)) return [];
  return [{ id: "open-file", name: `Open ${path}`, icon: "file", act: () => go(to("files", path)) }];
}
