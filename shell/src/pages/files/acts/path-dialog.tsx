// Asks for a path: for something new, or where something is to go.

import { useEffect, useRef, useState } from "react";
import { inWords, Refusal } from "../../../api/client";
import { Button, Field, Input } from "../../../ui/basics";
import { Dialog } from "../../../ui/overlay";
import { nameOf, nameTrouble, plain } from "../paths";

export interface PathQuestion {
  title: string;
  label: string;
  hint?: string;
  /** What stands there at first; its name is selected, so that typing replaces it. */
  initial: string;
  act: string;
  /** Does it; what it throws is shown, and the question stays. */
  submit: (path: string, replace: boolean) => Promise<void>;
  /** Offers to replace what is there. */
  replaces?: boolean;
}

export function PathDialog({ question, onClose }: { question: PathQuestion; onClose: () => void }) {
  const { title, label, hint, initial, act, submit, replaces } = question;
  const [typed, setTyped] = useState(initial);
  const [trouble, setTrouble] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => select(input.current, initial), [initial]);
  const path = plain(typed);
  const wrong = path === null ? "This leads out of the workspace." : nameTrouble(/\/\s*$/.test(typed) ? "" : nameOf(path));
  const run = async (replace: boolean) => {
    if (wrong || path === null) return;
    setBusy(true);
    try {
      await submit(path, replace);
      onClose();
    } catch (error) {
      setTrouble(error);
      setBusy(false);
    }
  };
  const isThere = trouble instanceof Refusal && (trouble.kind === "exists" || trouble.kind === "conflict");
  return (
    <Dialog
      open
      title={title}
      onClose={onClose}
      acts={
        <>
          <Button onClick={onClose}>Cancel</Button>
          {isThere && replaces && (
            <Button look="danger" busy={busy} onClick={() => void run(true)}>
              Replace it
            </Button>
          )}
          <Button look="primary" type="submit" form="path" busy={busy} disabled={wrong !== null}>
            {act}
          </Button>
        </>
      }
    >
      <form id="path" onSubmit={(event) => (event.preventDefault(), void run(false))}>
        <Field label={label} hint={hint ?? "From the workspace. Folders that are missing are made."}>
          <Input ref={input} className="mono" value={typed} onChange={(event) => (setTyped(event.target.value), setTrouble(null))} />
        </Field>
      </form>
      <p role="alert" className="small" style={{ color: "var(--bad)", minHeight: "1.5em" }}>
        {typed !== initial && wrong ? wrong : isThere ? `${path} is there already.` : trouble ? inWords(trouble) : ""}
      </p>
    </Dialog>
  );
}

/** Selects the name without its ending. */
function select(input: HTMLInputElement | null, path: string): void {
  if (!input) return;
  const start = path.lastIndexOf("/") + 1;
  const dot = path.lastIndexOf(".");
  input.focus();
  input.setSelectionRange(start, dot > start ? dot : path.length);
}
