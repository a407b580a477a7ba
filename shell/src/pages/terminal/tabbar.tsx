// The tabs above the terminals: chosen with arrows, renamed with F2 or a double click, closed with Delete.

import { useState } from "react";
import { classes, IconButton } from "../../ui/basics";
import { Icon } from "../../ui/icons";
import { Menu, type MenuItem } from "../../ui/overlay";
import type { Tab } from "./tabs";
import css from "./terminal.module.css";

interface Props {
  tabs: readonly Tab[];
  shown: string | undefined;
  show: (id: string) => void;
  close: (id: string) => void;
  rename: (id: string, name: string) => void;
  add: () => void;
  items: MenuItem[];
}

export function TabBar({ tabs, shown, show, close, rename, add, items }: Props) {
  const [named, setNamed] = useState<string | null>(null);
  const press = (event: React.KeyboardEvent, at: number) => {
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    const next = to === undefined ? undefined : tabs[(to + tabs.length) % tabs.length];
    if (next) {
      event.preventDefault();
      show(next.id);
      document.getElementById(`tab-${next.id}`)?.focus();
    }
    if (event.key === "F2") setNamed(tabs[at]!.id);
    if (event.key === "Delete") close(tabs[at]!.id);
    // Down into the terminal, from where Ctrl Shift Up leads back.
    if (event.key === "ArrowDown") document.querySelector<HTMLElement>(`#terminal-${CSS.escape(tabs[at]!.id)} textarea`)?.focus();
  };
  return (
    <div className={css.bar}>
      <div className={css.tabs} role="tablist" aria-label="Terminals">
        {tabs.map((tab, at) => {
          const isShown = tab.id === shown;
          if (tab.id === named) return <Rename key={tab.id} tab={tab} done={(name) => (name !== null && rename(tab.id, name), setNamed(null))} />;
          return (
            <span key={tab.id} className={classes(css.tab, isShown && css.chosen)} role="presentation">
              <button
                type="button"
                role="tab"
                id={`tab-${tab.id}`}
                aria-selected={isShown}
                aria-controls={`terminal-${tab.id}`}
                tabIndex={isShown ? 0 : -1}
                title={`${tab.name} (F2 renames it, Delete closes it)`}
                onClick={() => show(tab.id)}
                onDoubleClick={() => setNamed(tab.id)}
                onKeyDown={(event) => press(event, at)}
              >
                <span className={css.dot} data-state={tab.state} />
                <span className="cut-off">{tab.name}</span>
                {tab.state !== "running" && <span className="unseen">, ended</span>}
              </button>
              {/* For pointers: a list of tabs holds tabs alone, and keys have Delete and the menu. */}
              <span className={css.close} aria-hidden="true" title={`Close ${tab.name}`} onClick={() => close(tab.id)}>
                <Icon name="close" size={14} />
              </span>
            </span>
          );
        })}
      </div>
      <IconButton label="New terminal" icon="plus" onClick={add} />
      <Menu label="More about this terminal" small={false} items={[{ label: "Rename", icon: "edit", disabled: !shown, act: () => setNamed(shown ?? null) }, ...items]} />
    </div>
  );
}

function Rename({ tab, done }: { tab: Tab; done: (name: string | null) => void }) {
  return (
    <input
      autoFocus
      className={css.rename}
      aria-label={`New name for ${tab.name}`}
      defaultValue={tab.name}
      maxLength={40}
      onFocus={(event) => event.target.select()}
      onBlur={(event) => done(event.target.value)}
      onKeyDown={(event) => {
        if (event.key === "Enter") done(event.currentTarget.value);
        if (event.key === "Escape") done(null);
      }}
    />
  );
}
