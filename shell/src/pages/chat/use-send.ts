// What the owner says goes to the conversation, and stays in sight until it is a turn of it.

import { useCallback, useEffect, useMemo, useState } from "react";
import { send } from "./calls";

/** The first message of a conversation that was made for it. */
const first = new Map<string, string>();
export const sendFirst = (id: string, text: string) => void first.set(id, text);

export interface Sending {
  /** What was said and is not yet in the conversation. */
  pending: string | null;
  refusal: unknown;
  say: (text: string) => void;
  forget: () => void;
}

/** `seq` is the last event that is shown; what is refused is given back. */
export function useSend(id: string, seq: number, giveBack: (text: string) => void): Sending {
  const [pending, setPending] = useState<{ text: string; seq: number | null } | null>(null);
  const [refusal, setRefusal] = useState<unknown>(null);
  const say = useCallback(
    (text: string) => {
      setRefusal(null);
      setPending({ text, seq: null });
      send(id, text).then(
        (sent) => setPending({ text, seq: sent.seq }),
        (error: unknown) => {
          setPending(null);
          setRefusal(error);
          giveBack(text);
        },
      );
    },
    [id, giveBack],
  );
  useEffect(() => {
    const text = first.get(id);
    first.delete(id);
    if (text !== undefined) say(text);
  }, [id, say]);
  const arrived = pending?.seq != null && pending.seq <= seq;
  useEffect(() => {
    if (arrived) setPending(null);
  }, [arrived]);
  const shown = arrived ? null : (pending?.text ?? null);
  return useMemo(() => ({ pending: shown, refusal, say, forget: () => setRefusal(null) }), [shown, refusal, say]);
}
