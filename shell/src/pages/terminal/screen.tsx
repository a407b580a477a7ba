// One terminal: what its shell shows, and below it what is to be said about the shell.

import { useEffect, useRef, useState } from "react";
import { gateway, role } from "../../api/mount";
import { prefer, usePreferences } from "../../app/preferences";
import { Button, classes, LinkButton, Spinner } from "../../ui/basics";
import { sayError } from "../../ui/overlay";
import type { Terminals } from "./actions";
import { arrow, EXTRA_KEYS, type ExtraKey } from "./keys";
import type { LinkState } from "./link";
import { useShell, type Shell } from "./shell";
import type { Tab } from "./tabs";
import css from "./terminal.module.css";

interface Props {
  tab: Tab;
  shown: boolean;
  screenReader: boolean;
  /** To the tabs, by keyboard. */
  leave: () => void;
  restart: Terminals["restart"];
  close: (id: string) => void;
  onRestarted: (id: string) => void;
  /** Looks for what there is. */
  again: () => void;
}

export function Screen({ tab, shown, screenReader, leave, restart, close, onRestarted, again }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const { terminalSize } = usePreferences();
  const shell = useShell(host, tab.id, { fontSize: terminalSize, screenReader, shown, leave });
  const over = shell.state.is !== "open" && shell.state.is !== "connecting" && shell.state.is !== "lost";
  useEffect(() => {
    if (over) again();
  }, [over, again]);
  return (
    <div role="tabpanel" id={`terminal-${tab.id}`} aria-labelledby={`tab-${tab.id}`} className={classes(css.screen, !shown && css.away)}>
      <div className={classes(css.room, over && css.over)}>
        {/* Without padding of its own: what fits is measured here. */}
        <div ref={host} className={css.host} onKeyDown={(event) => zoom(event, terminalSize)} />
      </div>
      <Said state={shell.state} tryNow={shell.tryNow} restart={() => restart(tab.id).then(onRestarted)} close={() => close(tab.id)} />
      <ExtraKeys shell={shell} />
    </div>
  );
}

/** The size of the letters, as in other terminals. */
function zoom(event: React.KeyboardEvent, size: number): void {
  const step = event.ctrlKey && event.shiftKey && { Equal: 1, Minus: -1 }[event.code];
  if (!step) return;
  event.preventDefault();
  prefer({ terminalSize: Math.min(28, Math.max(9, size + step)) });
}

/** In what way the shell is not simply there. */
function Said({ state, tryNow, restart, close }: { state: LinkState; tryNow: () => void; restart: () => Promise<void>; close: () => void }) {
  const [busy, setBusy] = useState(false);
  if (state.is === "open") return null;
  const again = () => {
    setBusy(true);
    void restart().catch(sayError).finally(() => setBusy(false));
  };
  const waiting = state.is === "connecting" || state.is === "lost";
  return (
    <div className={classes(css.said, state.is === "connecting" && css.late)} role="status">
      {waiting && <Spinner />}
      <p className="grow">{words(state)}</p>
      {state.is === "lost" && (
        <Button small onClick={tryNow}>
          Try now
        </Button>
      )}
      {state.is === "signed-out" && (
        <LinkButton small href={gateway("/login").href}>
          Sign in
        </LinkButton>
      )}
      {!waiting && state.is !== "signed-out" && (
        <>
          <Button small look="primary" icon="refresh" busy={busy} onClick={again}>
            {state.is === "moved" ? "New terminal here" : "Start again"}
          </Button>
          <Button small onClick={close}>
            Close
          </Button>
        </>
      )}
    </div>
  );
}

function words(state: LinkState): string {
  switch (state.is) {
    case "ended":
      return `The shell ended ${ending(state.exit)}`;
    case "gone":
      return "This shell is gone: the sandbox was started again, or somebody closed it.";
    case "moved":
      return `What was ${role} is ${role === "live" ? "dev" : "live"} now, and this shell with it. It runs on there.`;
    case "signed-out":
      return "You were signed out. The shell runs on.";
    case "refused":
      return `The shell cannot be shown: ${state.why}.`;
    case "lost":
      return "The connection was lost. The shell runs on; trying again.";
    default:
      return "Connecting.";
  }
}

function ending(exit: Extract<LinkState, { is: "ended" }>["exit"]): string {
  const memory = exit.out_of_memory ? " The computer ran out of memory." : "";
  if (exit.signal) return `by signal ${exit.signal}.${memory}`;
  return `with exit code ${exit.code ?? "unknown"}.${memory}`;
}

/** For keyboards on glass. They do not take the focus, so the keyboard stays. */
function ExtraKeys({ shell }: { shell: Shell }) {
  const still = (event: React.PointerEvent) => event.preventDefault();
  const press = (key: ExtraKey) => shell.type(key.arrow ? (application) => arrow(key.arrow!, application) : (key.sends ?? ""));
  const paste = () => void navigator.clipboard.readText().then(shell.paste).catch(sayError);
  return (
    <div className={css.keys} role="toolbar" aria-label="Keys">
      <button type="button" tabIndex={-1} aria-pressed={shell.held} onPointerDown={still} onClick={() => shell.hold(!shell.held)}>
        Ctrl
      </button>
      {EXTRA_KEYS.map((key) => (
        <button key={key.name} type="button" tabIndex={-1} aria-label={key.name} onPointerDown={still} onClick={() => press(key)}>
          {key.label}
        </button>
      ))}
      {"clipboard" in navigator && (
        <button type="button" tabIndex={-1} onPointerDown={still} onClick={paste}>
          Paste
        </button>
      )}
    </div>
  );
}
