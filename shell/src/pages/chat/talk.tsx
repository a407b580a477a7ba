// One conversation: what was said and done, what is to be done, and where more is said.

import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { say, sayError } from "../../ui/overlay";
import { Announcer } from "./announcer";
import { useAttachments } from "./attachments";
import { add, fork, stop, useActsOn, useChange, type Info } from "./calls";
import { readDraft, useDraft, writeDraft } from "./draft";
import { DropZone } from "./drop";
import { FirstWords } from "./empty";
import { Foot } from "./foot";
import { Head } from "./head";
import { TalkContext, type Talk as TalkActs } from "./talk-context";
import { Transcript } from "./transcript";
import { UndoDialog } from "./undo-dialog";
import { useTalkCommands } from "./use-commands";
import { useSend } from "./use-send";
import { useTakenBack, useUndo, type Scope } from "./use-undo";
import { useView } from "./use-view";
import type { Call, View } from "./view";

interface Props {
  info: Info;
  docked: boolean;
  lead: ReactNode;
  /** An event to go to. */
  at: number | null;
  onOpen: (id: string) => void;
}

export function Talk({ info, docked, lead, at, onOpen }: Props) {
  const { id } = info;
  const { view, ready, connected } = useView(id, info.seq);
  const [text, setText] = useDraft(id);
  const giveBack = useCallback((refused: string) => setText([refused, readDraft(id)].filter(Boolean).join("\n\n")), [id, setText]);
  const sending = useSend(id, view.seq, giveBack);
  const actsOn = useActsOn(info.role);
  const attachments = useAttachments(actsOn);
  const { mutate: change } = useChange(id);
  const undoing = useUndo(id);
  const input = useRef<HTMLTextAreaElement>(null);
  const working = ready ? view.working : info.state !== "idle";
  const stopping = useStopping(id, working);
  const acts = useActs(info, view, working, undoing.start, onOpen);
  const items = useTalkCommands({ acts, view, working, stop: stopping.stop, setMode: (mode) => change({ mode }) });
  const escape = useEscape(working, docked, stopping.stop);
  useFocus(input, docked);
  const choose = useCallback(
    (words: string) => {
      setText(words);
      input.current?.focus();
    },
    [setText],
  );
  const { asking, replies, used, dollars } = view;
  const spent = useMemo(() => ({ replies, used, dollars }), [replies, used, dollars]);
  return (
    <TalkContext value={acts}>
      <DropZone onFiles={attachments.add} onKeyDown={escape}>
        <Head info={info} docked={docked} lead={lead} onOpen={onOpen} items={items} />
        <Transcript view={view} ready={ready} pending={sending.pending} role={actsOn} at={at}>
          <FirstWords role={actsOn} onChoose={choose} />
        </Transcript>
        <Foot
          info={info}
          plan={view.plan}
          asking={asking}
          call={asking && callOf(view, asking.call)}
          actsOn={actsOn}
          acted={view.turns.at(-1)?.role}
          model={view.turns.at(-1)?.model}
          spent={spent}
          working={working}
          lost={!connected}
          stopping={stopping}
          sending={sending}
          attachments={attachments}
          text={text}
          onText={setText}
          input={input}
          onChange={change}
        />
        <Announcer view={view} ready={ready} />
        <UndoDialog undoing={undoing} />
      </DropZone>
    </TalkContext>
  );
}

const callOf = (view: View, id: string) => (view.turns.at(-1)?.steps.findLast((step) => step.kind === "call" && step.id === id) as Call | undefined) ?? null;

function useStopping(id: string, working: boolean) {
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    if (!working) setBusy(false);
  }, [working]);
  const now = useCallback(() => {
    setBusy(true);
    stop(id).catch((error: unknown) => {
      setBusy(false);
      sayError(error);
    });
  }, [id]);
  return useMemo(() => ({ busy: busy && working, stop: now }), [busy, working, now]);
}

/** What the parts of the conversation may do. */
function useActs(info: Info, view: View, working: boolean, start: TalkActs["undo"], onOpen: (id: string) => void): TalkActs {
  const client = useQueryClient();
  const takenBack = useTakenBack(info.id, view);
  const { id } = info;
  const parent = info.parent ?? null;
  const branch = useCallback(
    (seq?: number, text?: string) =>
      void fork(id, seq).then((made) => {
        add(client, made);
        if (text) writeDraft(made.id, text);
        onOpen(made.id);
        say("This is a fork: it has the same past, and a future of its own");
      }, sayError),
    [id, client, onOpen],
  );
  const busy = useRef(working);
  busy.current = working;
  const undo = useCallback((scope: Scope) => (busy.current ? say("A turn is under way: what it changes can be undone when it is over") : start(scope)), [start]);
  return useMemo(() => ({ id, parent, takenBack, undo, fork: branch, open: onOpen }), [id, parent?.id, parent?.seq, takenBack, undo, branch, onOpen]);
}

/** Escape stops the turn, unless something is open that it closes. */
function useEscape(working: boolean, docked: boolean, stopNow: () => void) {
  const press = useCallback(
    (event: { key: string; defaultPrevented: boolean }) => {
      if (event.key !== "Escape" || event.defaultPrevented || !working || document.querySelector(":popover-open, dialog[open]")) return;
      stopNow();
    },
    [working, stopNow],
  );
  useEffect(() => {
    if (docked) return;
    const loose = (event: KeyboardEvent) => event.target === document.body && press(event);
    addEventListener("keydown", loose);
    return () => removeEventListener("keydown", loose);
  }, [docked, press]);
  return press;
}

/** Whoever opens a conversation wants to write; on touch that would cover it with a keyboard. */
export function useFocus(input: React.RefObject<HTMLTextAreaElement | null>, docked: boolean): void {
  useEffect(() => {
    if (!docked && matchMedia("(pointer: fine)").matches) input.current?.focus();
  }, [input, docked]);
}
