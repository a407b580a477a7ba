// What the palette and the menu of a conversation offer.

import { useMemo, useRef } from "react";
import { useCommands, type Command } from "../../app/commands";
import type { MenuItem } from "../../ui/overlay";
import type { Mode } from "./calls";
import type { Talk } from "./talk-context";
import type { View } from "./view";

interface Offered {
  acts: Talk;
  view: View;
  working: boolean;
  stop: () => void;
  setMode: (mode: Mode) => void;
}

export function useTalkCommands({ acts, view, working, stop, setMode }: Offered): MenuItem[] {
  const { undo, fork } = acts;
  const last = lastChanged(acts, view);
  const turns = view.turns.length;
  const mode = useLatest(setMode);
  const items = useMemo((): MenuItem[] => {
    const changes = !working && last !== null;
    return [
      { label: "Undo the last turn", icon: "undo", disabled: !changes, act: () => last !== null && undo({ turn: last }) },
      { label: "Undo everything it changed", icon: "undo", disabled: !changes, act: () => undo({}) },
      { label: "Fork this conversation", icon: "fork", disabled: turns === 0, act: () => fork() },
    ];
  }, [working, last, undo, fork, turns]);
  const commands = useMemo(() => {
    const offered: Command[] = items.filter(({ disabled }) => !disabled).map(({ label, icon = "chat", act }) => ({ id: `talk-${label}`, name: label, icon, also: "chat agent", act }));
    if (working) offered.push({ id: "talk-stop", name: "Stop the agent", icon: "stop", also: "cancel end turn", keys: "Esc", act: stop });
    for (const [name, words] of MODES) offered.push({ id: `talk-${name}`, name: words, icon: "agent", also: "mode", act: () => mode.current(name) });
    return offered;
  }, [items, working, stop, mode]);
  useCommands(commands);
  return items;
}

const MODES: readonly [Mode, string][] = [
  ["plan", "Let the agent plan, and change nothing"],
  ["ask", "Let the agent ask before each change"],
  ["auto", "Let the agent change what it needs"],
];

/** The newest turn of its own whose changes are not taken back. */
function lastChanged({ parent, takenBack }: Talk, view: View): number | null {
  const turn = view.turns.findLast(({ steps }) => steps.some((step) => step.kind === "call" && step.checkpoints.length > 0 && !takenBack(step)));
  return turn && turn.seq > (parent?.seq ?? 0) ? turn.seq : null;
}

function useLatest<T>(value: T): { current: T } {
  const latest = useRef(value);
  latest.current = value;
  return latest;
}
