// Parts of pages that tell about the computer: a titled card, facts side by side, and how full something is.

import { useId, type ReactNode } from "react";
import { classes, IconButton } from "./basics";
import { copyText } from "./clipboard";
import { say, sayError } from "./overlay";
import css from "./panel.module.css";

/** A titled card. `plain` has no padding below its title, for lists that reach its edges. */
export function Panel({ title, about, acts, plain, children }: { title: ReactNode; about?: ReactNode; acts?: ReactNode; plain?: boolean; children: ReactNode }) {
  const name = useId();
  return (
    <section className={css.panel} aria-labelledby={name}>
      <header className={css.head}>
        <div className="grow">
          <h2 id={name}>{title}</h2>
          {about && <p className={css.about}>{about}</p>}
        </div>
        {acts && <div className={css.acts}>{acts}</div>}
      </header>
      <div className={classes(css.body, "in-turn", plain && css.plain)}>{children}</div>
    </section>
  );
}

export type Fact = readonly [name: string, value: ReactNode];

/** Names and values. A value that is not known is left out. */
export function Facts({ facts }: { facts: readonly (Fact | null | false | undefined)[] }) {
  return (
    <dl className={css.facts}>
      {facts.map(
        (fact) =>
          fact && (
            <div key={fact[0]}>
              <dt>{fact[0]}</dt>
              <dd>{fact[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

/** How much of something is used. */
export function Meter({ label, value, most, words }: { label: string; value: number; most: number; words: string }) {
  const part = most > 0 ? Math.min(1, value / most) : 0;
  return (
    <div className={css.meter} role="meter" aria-label={label} aria-valuemin={0} aria-valuemax={most} aria-valuenow={Math.min(value, most)} aria-valuetext={words}>
      <span style={{ transform: `scaleX(${part})` }} data-level={part > 0.9 ? "bad" : part > 0.7 ? "warn" : "good"} />
    </div>
  );
}

/** Something to type on the host, and a button that copies it. */
export function Typed({ line }: { line: string }) {
  const copy = () => copyText(line).then(() => say("Copied"), sayError);
  return (
    <span className={css.typed}>
      <code>{line}</code>
      <IconButton small label={`Copy ${line}`} icon="copy" onClick={() => void copy()} />
    </span>
  );
}
