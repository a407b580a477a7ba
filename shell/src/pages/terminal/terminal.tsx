// Terminals: each tab is a shell of the sandbox, which goes on when nobody looks at it.

import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useCommands } from "../../app/commands";
import { prefer, usePreferences } from "../../app/preferences";
import { go, to } from "../../app/router";
import { Button, Empty, Skeleton, Trouble } from "../../ui/basics";
import { sayError, type MenuItem } from "../../ui/overlay";
import { useTerminals, type Terminals } from "./actions";
import { Screen } from "./screen";
import { TabBar } from "./tabbar";
import { beside } from "./tabs";
import css from "./terminal.module.css";

const show = (id: string) => go(to("terminal", id), "replace");

export default function Page({ rest, query }: { rest: string; query: URLSearchParams }) {
  const terminals = useTerminals();
  const { tabs, known, error, again } = terminals;
  const shown = rest === "new" ? undefined : (tabs.find(({ id }) => id === rest) ?? tabs[0]);
  const [screenReader, setScreenReader] = useState(() => localStorage.getItem(SPOKEN) === "yes");
  const add = useStart(terminals, known, rest, query.get("cwd") ?? undefined);
  const close = (id: string) => {
    const next = id === shown?.id ? beside(tabs, id) : shown;
    void terminals.close(id).then(() => show(next?.id ?? ""), sayError);
  };
  useCommands(useMemo(() => [{ id: "new-terminal", name: "New terminal", icon: "plus" as const, also: "shell tab", act: add }], [add]));
  const items = useMenu(shown?.id, close, screenReader, (on) => {
    localStorage.setItem(SPOKEN, on ? "yes" : "no");
    setScreenReader(on);
  });
  return (
    <div className={css.page}>
      <h1 className="unseen">Terminal</h1>
      <TabBar tabs={tabs} shown={shown?.id} show={show} close={close} rename={terminals.rename} add={add} items={items} />
      <div className={css.stack}>
        {error !== null && !known && (
          <div className={css.message}>
            <Trouble error={error} retry={again} />
          </div>
        )}
        {!known && error === null && (
          <div className={css.message} role="status" aria-label="Loading">
            <Skeleton height={18} width="40%" />
          </div>
        )}
        {known && tabs.length === 0 && (
          <Empty icon="terminal" title="No terminal is open" action={<Button look="primary" icon="plus" onClick={add}>New terminal</Button>}>
            A terminal is a shell in your computer. It goes on when you close the browser, and is here when you come back.
          </Empty>
        )}
        <Screens terminals={terminals} shown={shown?.id} screenReader={screenReader} close={close} />
      </div>
    </div>
  );
}

const SPOKEN = "nacre.terminal-spoken";

/** Those that were looked at stay connected while the page is open. */
function Screens({ terminals, shown, screenReader, close }: { terminals: Terminals; shown: string | undefined; screenReader: boolean; close: (id: string) => void }) {
  const seen = useRef(new Set<string>());
  if (shown) seen.current.add(shown);
  return terminals.tabs
    .filter(({ id }) => seen.current.has(id))
    .map((tab) => (
      <Screen
        key={tab.id}
        tab={tab}
        shown={tab.id === shown}
        screenReader={screenReader}
        leave={() => document.getElementById(`tab-${tab.id}`)?.focus()}
        restart={terminals.restart}
        onRestarted={show}
        close={close}
        again={terminals.again}
      />
    ));
}

let starting: Promise<void> | null = null;

/** Starts a shell when asked, and by itself when somebody comes here and there is none. */
function useStart({ start, tabs }: Terminals, known: boolean, rest: string, cwd: string | undefined): () => void {
  const add = useCallback(() => {
    starting ??= start({ cwd })
      .then(show, sayError)
      .finally(() => (starting = null));
  }, [start, cwd]);
  const came = useRef(false);
  useEffect(() => {
    if (!known) return;
    if (rest === "new" || (!came.current && tabs.length === 0)) add();
    came.current = true;
  }, [known, rest, tabs.length, add]);
  return add;
}

function useMenu(shown: string | undefined, close: (id: string) => void, screenReader: boolean, speak: (on: boolean) => void): MenuItem[] {
  const { terminalSize } = usePreferences();
  return [
    { label: "Larger letters", icon: "plus", act: () => prefer({ terminalSize: Math.min(28, terminalSize + 1) }) },
    { label: "Smaller letters", icon: "dot", act: () => prefer({ terminalSize: Math.max(9, terminalSize - 1) }) },
    { label: screenReader ? "Do not read output aloud" : "For screen readers: read output", icon: "user", act: () => speak(!screenReader) },
    { label: "Close, and end the shell", icon: "close", danger: true, disabled: !shown, act: () => shown && close(shown) },
  ];
}
