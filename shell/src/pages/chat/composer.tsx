// Where the owner writes. Enter sends, Shift Enter begins a line, Escape stops the turn.

import { useLayoutEffect, useRef, type ReactNode, type RefObject } from "react";
import { Button, IconButton, Key } from "../../ui/basics";
import { Attached } from "./attached";
import { filesOf, type Attachments } from "./attachments";
import css from "./composer.module.css";

interface Props {
  text: string;
  onText: (text: string) => void;
  input: RefObject<HTMLTextAreaElement | null>;
  attachments: Attachments;
  onSend: () => void;
  /** Why nothing can be sent now. */
  reason: string | null;
  /** There is a turn to stop. */
  onStop: (() => void) | null;
  stopping: boolean;
  /** What stands above the input: refusals and the like. */
  above?: ReactNode;
  /** How the conversation is set, below the input. */
  settings: ReactNode;
  meter?: ReactNode;
}

export function Composer({ text, onText, input, attachments, onSend, reason, onStop, stopping, above, settings, meter }: Props) {
  const picker = useRef<HTMLInputElement>(null);
  useGrowing(input, text);
  const empty = text.trim() === "" && attachments.files.length === 0;
  const may = reason === null && !empty && !attachments.busy;
  const press = (event: React.KeyboardEvent) => {
    // Enter that ends the writing of a character is not the end of the message.
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    if (may) onSend();
  };
  const paste = (event: React.ClipboardEvent) => {
    const files = filesOf(event.clipboardData);
    if (files.length === 0) return;
    event.preventDefault();
    attachments.add(files);
  };
  return (
    <div className={css.composer}>
      {above}
      <div className={css.box}>
        <Attached attachments={attachments} />
        <textarea
          ref={input}
          className={css.input}
          rows={1}
          value={text}
          placeholder="Say what to do, or ask"
          aria-label="Message"
          aria-describedby="composer-reason"
          enterKeyHint="send"
          onChange={(event) => onText(event.target.value)}
          onKeyDown={press}
          onPaste={paste}
        />
        <div className={css.bar}>
          <IconButton small label="Attach files" icon="attach" onClick={() => picker.current?.click()} />
          <input
            ref={picker}
            type="file"
            multiple
            hidden
            onChange={(event) => {
              attachments.add(event.target.files ?? []);
              event.target.value = "";
            }}
          />
          {settings}
          <span className={css.end}>
            {onStop ? (
              <Button small icon="stop" busy={stopping} onClick={onStop}>
                <span className={css.word}>Stop</span>
              </Button>
            ) : (
              <Button small look="primary" icon="send" disabled={!may} onClick={onSend}>
                <span className={css.word}>Send</span>
              </Button>
            )}
          </span>
        </div>
      </div>
      <div className={css.below}>
        <span id="composer-reason" className="grow cut-off">
          {reason ?? (attachments.busy ? "Files are on their way" : <Hints />)}
          {onStop && (
            <span className={css.hints}>
              {" "}
              (<Key>Esc</Key>)
            </span>
          )}
        </span>
        {meter}
      </div>
    </div>
  );
}

function Hints() {
  return (
    <span className={css.hints}>
      <Key>Enter</Key> sends, <Key>Shift</Key> <Key>Enter</Key> begins a line
    </span>
  );
}

/** As high as what is written, up to a third of the page. */
function useGrowing(input: RefObject<HTMLTextAreaElement | null>, text: string): void {
  useLayoutEffect(() => {
    const element = input.current;
    if (!element) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight, innerHeight / 3)}px`;
  }, [input, text]);
}
