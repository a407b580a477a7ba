// Before anything was said: what this is, and three ways to begin.

import { Notice } from "../../ui/basics";
import { Icon, type IconName } from "../../ui/icons";
import { useModels, usePlans } from "./calls";
import css from "./empty.module.css";

const SUGGESTIONS: readonly { icon: IconName; text: string; why: string }[] = [
  { icon: "moon", text: "Change the theme of this desktop to a warm dark one", why: "The desktop is yours to change: it happens while you watch, and one click takes it back." },
  { icon: "search", text: "Look around this computer and tell me what is here", why: "It reads and changes nothing." },
  { icon: "runs", text: "Make a small web page with the weather of my city and tell me how to open it", why: "It writes files, runs them and shows you what it did." },
];

export function FirstWords({ role, onChoose }: { role: string; onChoose: (text: string) => void }) {
  const { data: models } = useModels();
  const none = models && models.models.length === 0 && models.providers.length === 0;
  return (
    <div className={css.empty}>
      <span className={css.pearl} aria-hidden="true" />
      <h2>What shall we do?</h2>
      <p>The agent works in your computer, with its files and its shell. You see every step, and each can be undone.</p>
      {none && (
        <Notice tone="warn" icon="warning">
          No model is set up yet. On the machine that runs Nacre, add one with <code>nacre provider add anthropic</code>; which one to ask is chosen below, or as <code>[agent] model</code> in its nacre.toml.
        </Notice>
      )}
      <ul className={css.list} aria-label="Ways to begin">
        {SUGGESTIONS.map(({ icon, text, why }) => (
          <li key={text}>
            <button type="button" onClick={() => onChoose(text)}>
              <Icon name={icon} size={18} />
              <span>
                {text}
                <small>{why}</small>
              </span>
            </button>
          </li>
        ))}
      </ul>
      <Plans role={role} onChoose={onChoose} />
    </div>
  );
}

function Plans({ role, onChoose }: { role: string; onChoose: (text: string) => void }) {
  const { data } = usePlans(role);
  if (!data || data.plans.length === 0) return null;
  return (
    <p className={css.plans}>
      Or follow a plan:{" "}
      {data.plans.map(({ name, description }) => (
        <button key={name} type="button" title={description} onClick={() => onChoose(`Use the plan “${name}” to `)}>
          {name}
        </button>
      ))}
    </p>
  );
}
