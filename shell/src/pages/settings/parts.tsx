// How a setting looks: what it is on the left, what it is set to on the right.

import { useId, type ReactNode } from "react";
import css from "./settings.module.css";

export function Setting({ name, hint, children }: { name: string; hint?: ReactNode; children: ReactNode }) {
  return (
    <div className={css.setting}>
      <div className="grow">
        <p>{name}</p>
        {hint && <p className="small soft">{hint}</p>}
      </div>
      {children}
    </div>
  );
}

export function Switch({ name, hint, on, onChange }: { name: string; hint?: ReactNode; on: boolean; onChange: (on: boolean) => void }) {
  const label = useId();
  return (
    <div className={css.setting}>
      <div className="grow">
        <p id={label}>{name}</p>
        {hint && <p className="small soft">{hint}</p>}
      </div>
      <button type="button" role="switch" aria-checked={on} aria-labelledby={label} className={css.switch} onClick={() => onChange(!on)}>
        <span />
      </button>
    </div>
  );
}
