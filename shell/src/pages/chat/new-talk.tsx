// A conversation that does not exist yet: it is made when something is said in it.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { useAttachments } from "./attachments";
import { add, create, useActsOn, type Settings } from "./calls";
import { Composer } from "./composer";
import { useDraft } from "./draft";
import { DropZone } from "./drop";
import { FirstWords } from "./empty";
import { Head } from "./head";
import { withFiles } from "./message";
import { Refused } from "./refused";
import { SettingsBar } from "./settings";
import { useFocus } from "./talk";
import css from "./talk.module.css";
import { Transcript } from "./transcript";
import { sendFirst } from "./use-send";
import { EMPTY } from "./view";

interface Props {
  docked: boolean;
  lead: ReactNode;
  /** What another page wants to be asked. */
  words: string | null;
  onOpen: (id: string, how?: "push" | "replace") => void;
}

export function NewTalk({ docked, lead, words, onOpen }: Props) {
  const client = useQueryClient();
  const [settings, setSettings] = useState<Settings>({ mode: "auto" });
  const [text, setText] = useDraft("new");
  const actsOn = useActsOn(settings.role);
  const attachments = useAttachments(actsOn);
  const input = useRef<HTMLTextAreaElement>(null);
  useFocus(input, docked);
  useEffect(() => {
    if (words) setText(words);
  }, [words, setText]);
  const begin = useMutation({
    mutationFn: () => create(settings),
    onSuccess: (info) => {
      const paths = attachments.files.flatMap(({ path }) => path ?? []);
      add(client, info);
      sendFirst(info.id, withFiles(text.trim(), paths));
      setText("");
      onOpen(info.id, "replace");
    },
  });
  const choose = (chosen: string) => {
    setText(chosen);
    input.current?.focus();
  };
  return (
    <DropZone onFiles={attachments.add}>
      <Head info={null} docked={docked} lead={lead} onOpen={onOpen} />
      <Transcript view={EMPTY} ready pending={null} role={actsOn} at={null}>
        <FirstWords role={actsOn} onChoose={choose} />
      </Transcript>
      <div className={css.foot}>
        <Composer
          text={text}
          onText={setText}
          input={input}
          attachments={attachments}
          onSend={() => begin.mutate()}
          reason={begin.isPending ? "The conversation begins" : null}
          onStop={null}
          stopping={false}
          above={<Refused error={begin.error} onClose={begin.reset} />}
          settings={<SettingsBar settings={settings} actsOn={actsOn} onChange={(change) => setSettings({ ...settings, ...change })} />}
        />
      </div>
    </DropZone>
  );
}
