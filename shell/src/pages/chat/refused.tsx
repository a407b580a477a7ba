// Why something was not sent, and what to do about it.

import { inWords } from "../../api/client";
import { to } from "../../app/router";
import { Button, IconButton, LinkButton } from "../../ui/basics";
import { Icon } from "../../ui/icons";
import { PANEL } from "./settings";
import css from "./talk.module.css";

/** In the words of whoever refused. What was typed is still there. */
export function Refused({ error, onClose }: { error: unknown; onClose: () => void }) {
  if (error === null || error === undefined) return null;
  const words = inWords(error);
  const aboutModel = /\b(model|provider|key)\b/i.test(words);
  return (
    <div className={css.refused} role="alert">
      <Icon name="warning" size={18} />
      <div className="column grow">
        <span>{words}</span>
        {aboutModel && (
          <span className="row wraps">
            <Button small popoverTarget={PANEL}>
              Choose a model
            </Button>
            <LinkButton small href={to("settings")}>
              Providers
            </LinkButton>
          </span>
        )}
      </div>
      <IconButton small label="Dismiss" icon="close" onClick={onClose} />
    </div>
  );
}
