// A name for a moment, to find it by.

import { useEffect, useRef, useState } from "react";
import { Button, Field, Input } from "../../ui/basics";
import { Dialog, sayError } from "../../ui/overlay";
import { name } from "./calls";
import { useRename } from "./use-feed";
import type { Checkpoint } from "./words";

export function LabelDialog({ checkpoint, onClose }: { checkpoint: Checkpoint; onClose: () => void }) {
  const [words, setWords] = useState(checkpoint.label ?? "");
  const rename = useRename();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  const [busy, setBusy] = useState(false);
  const save = async (label: string | null) => {
    setBusy(true);
    try {
      await name(checkpoint.id, label);
      rename(checkpoint.id, label);
      onClose();
    } catch (error) {
      setBusy(false);
      sayError(error);
    }
  };
  return (
    <Dialog
      open
      title={`Name moment #${checkpoint.id}`}
      onClose={onClose}
      acts={
        <>
          {checkpoint.label && (
            <Button look="danger" disabled={busy} onClick={() => void save(null)}>
              Take the name off
            </Button>
          )}
          <Button look="primary" form="label" type="submit" busy={busy} disabled={words.trim() === ""}>
            Save
          </Button>
        </>
      }
    >
      <form
        id="label"
        onSubmit={(event) => {
          event.preventDefault();
          if (words.trim()) void save(words.trim());
        }}
      >
        <Field label="Name" hint="A moment with a name is not merged with others when history is made smaller.">
          <Input ref={input} value={words} maxLength={200} placeholder="It works" onChange={(event) => setWords(event.target.value)} />
        </Field>
      </form>
    </Dialog>
  );
}
