// The turns of a conversation, and the way to its end.

import { startTransition, useEffect, useLayoutEffect, useRef, useState, type ReactNode, type RefObject } from "react";
import { Skeleton } from "../../ui/basics";
import { Icon } from "../../ui/icons";
import { Said } from "./steps";
import css from "./transcript.module.css";
import { OneTurn } from "./turn";
import turnCss from "./turn.module.css";
import { useStick } from "./use-stick";
import type { Turn, View } from "./view";

/** Turns that are drawn at once. */
const AT_ONCE = 6;

interface Props {
  view: View;
  ready: boolean;
  pending: string | null;
  role: string;
  /** An event to go to. */
  at: number | null;
  /** What stands in place of turns when there are none. */
  children: ReactNode;
}

export function Transcript({ view, ready, pending, role, at, children }: Props) {
  const { scroller, content, away, fresh, toEnd, letGo } = useStick(ready ? view.seq : 0, view.turns.length > 0 || pending !== null);
  const { from, before } = useFirst(view.turns, ready, at, scroller);
  useGoTo(at, ready, letGo);
  useLayoutEffect(() => {
    if (pending !== null) toEnd();
  }, [pending, toEnd]);
  const unfold = (event: React.MouseEvent) => {
    if ((event.target as Element).closest("[aria-expanded]")) letGo();
  };
  const nothing = ready && view.turns.length === 0 && pending === null;
  return (
    <div className={css.frame}>
      <div ref={scroller} className={css.scroller} role="region" aria-label="Conversation" tabIndex={0} aria-busy={!ready}>
        <div ref={content} className={css.content} onClickCapture={unfold}>
          {!ready && pending === null && <Loading />}
          {nothing && children}
          {from > 0 && <div ref={before} className={css.before} >Earlier turns</div>}
          {ready && view.turns.slice(from).map((turn) => <OneTurn key={turn.seq} turn={turn} />)}
          {pending !== null && <Pending text={pending} role={role} />}
        </div>
      </div>
      {away && (
        <button type="button" className={css.below} data-fresh={fresh} onClick={toEnd}>
          <Icon name="down" size={16} />
          {fresh ? "New below" : "To the end"}
        </button>
      )}
    </div>
  );
}

function Pending({ text, role }: { text: string; role: string }) {
  return (
    <div className={turnCss.turn} data-live="true">
      <Said text={text} role={role} pending />
      <p className={turnCss.now}>Sending …</p>
    </div>
  );
}

function Loading() {
  return (
    <div className={css.loading} role="status" aria-label="Loading the conversation">
      <Skeleton height={44} width="46%" />
      <Skeleton height={18} width="88%" />
      <Skeleton height={18} width="72%" />
      <Skeleton height={38} />
    </div>
  );
}

/**
 * The first turn that is drawn. Those before it follow as somebody comes near them, and what they look at
 * stays where it is.
 */
function useFirst(turns: readonly Turn[], ready: boolean, at: number | null, scroller: RefObject<HTMLDivElement | null>) {
  const [first, setFirst] = useState<number | null>(null);
  const begun = useRef<number | null>(null);
  if (ready) begun.current ??= Math.max(0, turns.length - AT_ONCE);
  const wanted = at === null ? Infinity : Math.max(0, turns.findLastIndex(({ seq }) => seq <= at));
  const from = Math.min(first ?? begun.current ?? 0, wanted);
  const before = useRef<HTMLDivElement>(null);
  const height = useRef(0);
  useEffect(() => {
    if (!ready || from === 0 || !before.current) return;
    const near = new IntersectionObserver(
      ([entry]) => {
        if (!entry?.isIntersecting) return;
        near.disconnect();
        height.current = scroller.current?.scrollHeight ?? 0;
        startTransition(() => setFirst(Math.max(0, from - AT_ONCE)));
      },
      { root: scroller.current, rootMargin: "1600px 0px 0px 0px" },
    );
    near.observe(before.current);
    return () => near.disconnect();
  }, [ready, from, scroller]);
  useLayoutEffect(() => {
    const element = scroller.current;
    // Browsers that anchor by themselves have done so.
    if (!element || height.current === 0 || CSS.supports("overflow-anchor", "auto")) return;
    element.scrollTop += element.scrollHeight - height.current;
    height.current = 0;
  }, [from, scroller]);
  return { from, before };
}

/** Shows the step or the turn of an event, once. */
function useGoTo(at: number | null, ready: boolean, letGo: () => void): void {
  useEffect(() => {
    if (at === null || !ready) return;
    const all = [...document.querySelectorAll<HTMLElement>("[id^='step-'], [id^='turn-']")];
    const seqOf = (element: HTMLElement) => Number(element.id.slice(5));
    const found = all.filter((element) => seqOf(element) <= at).reduce<HTMLElement | null>((best, element) => (best && seqOf(best) > seqOf(element) ? best : element), null);
    if (!found) return;
    letGo();
    found.scrollIntoView({ block: "center" });
    found.classList.add(turnCss.flash!);
  }, [at, ready, letGo]);
}
