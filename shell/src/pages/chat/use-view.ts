// A conversation as it is and as it becomes: events are gathered and shown once per frame.

import { useCallback, useEffect, useRef, useState } from "react";
import { useConnection, useEvent, type Message } from "../../api/events";
import { socketAddress } from "../../api/mount";
import type { ConversationEvent } from "./events";
import { fold } from "./fold";
import { Stream, type Socket } from "./stream";
import { EMPTY, type View } from "./view";

/** Whoever comes back to one of the last few sees it at once. */
const MOST_KEPT = 4;
const kept = new Map<string, View>();

function keep(id: string, view: View): void {
  kept.delete(id);
  kept.set(id, view);
  const oldest = kept.keys().next();
  if (kept.size > MOST_KEPT && !oldest.done) kept.delete(oldest.value);
}

const connectTo = (id: string) => (after: number) => new WebSocket(socketAddress(`/conductor/conversations/${encodeURIComponent(id)}/events`, { after })) as Socket;

/** Before the next frame, or soon where nobody looks: pages in the background have no frames. */
function soon(act: () => void): () => void {
  const cancel = () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
  };
  const run = () => {
    cancel();
    act();
  };
  const frame = requestAnimationFrame(run);
  const timer = setTimeout(run, 300);
  return cancel;
}

export interface Shown {
  view: View;
  /** Everything that there was when it was opened is there. */
  ready: boolean;
  /** Whether what happens now is heard. */
  connected: boolean;
}

/** `until` is the last event that is known of; a long past is shown when all of it is there, not bit by bit. */
export function useView(id: string, until: number | undefined): Shown {
  const [view, setView] = useState(() => kept.get(id) ?? EMPTY);
  const [ready, setReady] = useState(() => until !== undefined && view.seq >= until);
  const [connected, setConnected] = useState(true);
  const stream = useRef<Stream | null>(null);
  const target = useRef(until);
  const publish = useRef(() => {});

  useEffect(() => {
    let current = kept.get(id) ?? EMPTY;
    let waiting: ConversationEvent[] = [];
    let cancel: (() => void) | null = null;
    let isReady = false;
    publish.current = () => {
      cancel = null;
      current = waiting.reduce(fold, current);
      waiting = [];
      keep(id, current);
      isReady ||= target.current !== undefined && current.seq >= target.current;
      if (!isReady) return;
      setView(current);
      setReady(true);
    };
    const opened = new Stream({
      after: current.seq,
      connect: connectTo(id),
      connected: setConnected,
      hear: (event) => {
        waiting.push(event);
        cancel ??= soon(publish.current);
      },
    });
    stream.current = opened;
    publish.current();
    return () => {
      opened.stop();
      cancel?.();
      keep(id, waiting.reduce(fold, current));
    };
  }, [id]);

  useEffect(() => {
    target.current ??= until;
    publish.current();
  }, [until]);

  useExpected(id, stream);
  return { view, ready, connected };
}

/** The other socket tells that something happened; when this one does not, it is dead. */
function useExpected(id: string, stream: React.RefObject<Stream | null>): void {
  const connection = useConnection();
  useEffect(() => {
    const now = () => stream.current?.now();
    if (connection === "open") now();
    addEventListener("online", now);
    return () => removeEventListener("online", now);
  }, [connection, stream]);
  const told = useCallback(
    (message: Message<"conversation">) => {
      if (message.id === id) stream.current?.expect(message.number);
    },
    [id, stream],
  );
  useEvent("conversation", told);
}
