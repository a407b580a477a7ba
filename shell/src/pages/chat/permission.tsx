// The agent asks, and waits. `y` and `n` answer wherever nothing is typed.

import { useCallback, useEffect, useState } from "react";
import { Button, Key } from "../../ui/basics";
import { Diff } from "../../ui/code";
import { compare } from "../../ui/diff";
import { Icon } from "../../ui/icons";
import { sayError } from "../../ui/overlay";
import { answer } from "./calls";
import css from "./permission.module.css";
import type { Call, Question } from "./view";

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.closest(".xterm, .cm-editor, dialog, [popover]") !== null);

interface Props {
  id: string;
  question: Question;
  /** What it is about. */
  call: Call | null;
  role: string;
}

export function Permission({ id, question, call, role }: Props) {
  const [given, setGiven] = useState<boolean | null>(null);
  const give = useCallback(
    (allow: boolean) => {
      setGiven(allow);
      answer(id, question.call, allow).catch((error: unknown) => {
        setGiven(null);
        sayError(error);
      });
    },
    [id, question.call],
  );
  useAnswerKeys(given === null, give);
  return (
    <section className={css.card} role="alert" aria-label="The agent asks">
      <p className={css.question}>
        <Icon name="user" size={17} />
        May it do this on {role || "the sandbox"}?
      </p>
      <Would call={call} title={question.title} />
      <div className={css.acts}>
        <Button look="primary" busy={given === true} disabled={given !== null} onClick={() => give(true)}>
          Allow <Key>y</Key>
        </Button>
        <Button busy={given === false} disabled={given !== null} onClick={() => give(false)}>
          Deny <Key>n</Key>
        </Button>
      </div>
    </section>
  );
}

/** The whole of what would be done: its title may be only the beginning. */
function Would({ call, title }: { call: Call | null; title: string }) {
  const given = (call?.input ?? {}) as Record<string, unknown>;
  const text = (name: string) => (typeof given[name] === "string" ? (given[name] as string) : null);
  const [command, before, after, content] = [text("command"), text("old_string"), text("new_string"), text("content")];
  if (before !== null && after !== null) {
    return (
      <>
        <p className="mono">{title}</p>
        <Diff lines={compare(before, after)} label="What it would change" />
      </>
    );
  }
  return (
    <pre className={css.what} tabIndex={0} role="group" aria-label="What it would do">
      {command ?? (content === null ? title : `${title}\n\n${content}`)}
    </pre>
  );
}

/** `g n` goes to a page, and is no answer. */
const AFTER_G = 1200;

function useAnswerKeys(open: boolean, give: (allow: boolean) => void): void {
  useEffect(() => {
    if (!open) return;
    let pressedG = -AFTER_G;
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (event.key === "g") pressedG = event.timeStamp;
      else if ((event.key === "y" || event.key === "n") && event.timeStamp - pressedG >= AFTER_G) give(event.key === "y");
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [open, give]);
}
