// What the parts of a conversation may do, wherever they stand in it. It does not change while a turn goes
// on, or every part of a long conversation would be drawn again: `undo` says by itself when it is too early.

import { createContext, useContext } from "react";
import type { Of } from "../../api/client";
import type { Scope } from "./use-undo";
import type { Call } from "./view";

export interface Talk {
  id: string;
  /** Events up to its `seq` are of another conversation, and are undone there. */
  parent: Of<"ForkedFrom"> | null;
  takenBack: (call: Call) => boolean;
  undo: (scope: Scope) => void;
  /** Another conversation with everything up to an event, or all of it, and perhaps something to say in it. */
  fork: (at?: number, text?: string) => void;
  open: (id: string) => void;
}

export const TalkContext = createContext<Talk | null>(null);

export function useTalk(): Talk {
  const talk = useContext(TalkContext);
  if (!talk) throw new Error("this is a part of a conversation");
  return talk;
}
