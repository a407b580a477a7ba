// What stands below a conversation: what is to be done, what is asked, and where more is said. None of it
// is drawn again for the pieces of what is being said.

import { memo, useEffect, useState, type RefObject } from "react";
import type { Attachments } from "./attachments";
import type { Info, Settings } from "./calls";
import { Composer } from "./composer";
import { withFiles } from "./message";
import { Meter } from "./meter";
import { Permission } from "./permission";
import { Plan } from "./plan";
import { Refused } from "./refused";
import { SettingsBar } from "./settings";
import css from "./talk.module.css";
import type { Sending } from "./use-send";
import type { Call, View } from "./view";

interface Props {
  info: Info;
  plan: View["plan"];
  asking: View["asking"];
  /** What it asks about. */
  call: Call | null;
  actsOn: string;
  /** Where the last turn acted: it ends there, whatever is chosen meanwhile. */
  acted: string | undefined;
  /** Which model was asked last. */
  model: string | undefined;
  spent: Pick<View, "replies" | "used" | "dollars">;
  working: boolean;
  lost: boolean;
  stopping: { busy: boolean; stop: () => void };
  sending: Sending;
  attachments: Attachments;
  text: string;
  onText: (text: string) => void;
  input: RefObject<HTMLTextAreaElement | null>;
  onChange: (change: Partial<Settings>) => void;
}

export const Foot = memo(function Foot({ info, plan, asking, call, actsOn, acted, model, spent, working, lost, stopping, sending, attachments, text, onText, input, onChange }: Props) {
  const send = () => {
    const paths = attachments.files.flatMap(({ path }) => path ?? []);
    sending.say(withFiles(text.trim(), paths));
    attachments.clear();
    onText("");
  };
  return (
    <div className={css.foot}>
      <Plan plan={plan} working={working} />
      {asking && <Permission key={asking.seq} id={info.id} question={asking} call={call} role={acted ?? actsOn} />}
      <Composer
        text={text}
        onText={onText}
        input={input}
        attachments={attachments}
        onSend={send}
        reason={reasonOf({ asking: asking !== null, working, sending: sending.pending !== null })}
        onStop={working ? stopping.stop : null}
        stopping={stopping.busy}
        above={
          <>
            <Refused error={sending.refusal} onClose={sending.forget} />
            {lost && <Lost />}
          </>
        }
        settings={<SettingsBar settings={info} actsOn={actsOn} asked={model} onChange={onChange} />}
        meter={<Meter spent={spent} />}
      />
    </div>
  );
});

function reasonOf({ asking, working, sending }: { asking: boolean; working: boolean; sending: boolean }): string | null {
  if (asking) return "It waits for your answer";
  if (working) return "A turn is under way: wait for its end, or stop it";
  return sending ? "Your message is on its way" : null;
}

/** A moment without a connection is not worth a word. */
function Lost() {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 2500);
    return () => clearTimeout(timer);
  }, []);
  return late ? <p className={css.lost} role="status">The connection is lost; trying again. The turn goes on without it.</p> : null;
}
