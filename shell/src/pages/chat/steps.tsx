// The steps of a turn, as far as they are not calls: what was said, thought, noted and taken back.

import { memo, useId, useState } from "react";
import { classes } from "../../ui/basics";
import { baseName, count, inWorkspace } from "../../ui/format";
import { Icon, type IconName } from "../../ui/icons";
import { Markdown } from "../../ui/markdown";
import { CallStep } from "./call";
import { readMessage } from "./message";
import { fileHref } from "./place";
import css from "./turn.module.css";
import type { Note, Step, TakenBack, Words } from "./view";

export const OneStep = memo(function OneStep({ step, role }: { step: Step; role: string }) {
  switch (step.kind) {
    case "text":
      return (
        <div id={`step-${step.seq}`} className={classes(css.text, step.open && css.coming)}>
          <Markdown text={step.text} />
        </div>
      );
    case "thought":
      return <Thought words={step} />;
    case "call":
      return <CallStep call={step} role={role} />;
    case "note":
      return <NoteStep note={step} />;
    case "undone":
      return <UndoneStep step={step} />;
  }
});

/** Folded: what a model thinks is for who wants to know. */
function Thought({ words }: { words: Words }) {
  const [open, setOpen] = useState(false);
  const id = useId();
  return (
    <div className={css.thought}>
      <button type="button" aria-expanded={open} aria-controls={id} onClick={() => setOpen(!open)}>
        <Icon name={open ? "down" : "chevron"} size={14} />
        {words.open ? "Thinking" : "Thought"}
        {!open && <span className="cut-off">{lastLine(words.text)}</span>}
      </button>
      <div id={id}>{open && <Markdown text={words.text} />}</div>
    </div>
  );
}

const lastLine = (text: string) => text.trim().split("\n").at(-1)?.replaceAll(/[*_`#]/g, "").slice(0, 160) ?? "";

const NOTES: Record<Note["about"], { icon: IconName; words: (text: string) => string }> = {
  notice: { icon: "info", words: (text) => text },
  retry: { icon: "refresh", words: (text) => `The model was asked again: ${text}` },
  compacted: { icon: "memory", words: (text) => `The conversation was made shorter for the model, ${text}. Everything is still here.` },
};

function NoteStep({ note }: { note: Note }) {
  const { icon, words } = NOTES[note.about];
  return (
    <p id={`step-${note.seq}`} className={css.note} data-about={note.about}>
      <Icon name={icon} size={15} />
      <span>{words(note.text)}</span>
    </p>
  );
}

const MOST_NAMED = 4;

function UndoneStep({ step }: { step: TakenBack }) {
  const names = step.paths.slice(0, MOST_NAMED).map(inWorkspace).join(", ");
  const more = step.paths.length - MOST_NAMED;
  return (
    <p id={`step-${step.seq}`} className={css.note}>
      <Icon name="undo" size={15} />
      <span>
        You took back what was changed{names && ` in ${names}`}
        {more > 0 && ` and ${count(more, "other", "others")}`}.
      </span>
    </p>
  );
}

/** What the owner said, with the files that went with it. */
export const Said = memo(function Said({ text, role, pending }: { text: string; role: string; pending?: boolean }) {
  const message = readMessage(text);
  return (
    <div className={classes(css.said, pending && css.pending)}>
      <h2 className="unseen">You</h2>
      {message.text && <p>{message.text}</p>}
      {message.files.length > 0 && (
        <ul className={css.files} aria-label="Attached files">
          {message.files.map((path) => (
            <li key={path}>
              <a href={fileHref(path, role) ?? undefined} title={path}>
                <Icon name="attach" size={14} />
                {baseName(path)}
              </a>
            </li>
          ))}
        </ul>
      )}
      {pending && <span className="unseen">being sent</span>}
    </div>
  );
});
