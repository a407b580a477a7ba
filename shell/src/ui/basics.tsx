// The small parts that every page is made of.

import type { AnchorHTMLAttributes, ButtonHTMLAttributes, InputHTMLAttributes, ReactNode, Ref } from "react";
import { inWords } from "../api/client";
import { Icon, type IconName } from "./icons";
import css from "./ui.module.css";

export const classes = (...names: (string | false | null | undefined)[]) => names.filter(Boolean).join(" ");

type Look = { look?: "plain" | "primary" | "quiet" | "danger"; small?: boolean; icon?: IconName };
type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & Look & { busy?: boolean; ref?: Ref<HTMLButtonElement> };

const lookOf = ({ look = "plain", small }: Look) =>
  classes(css.button, look === "primary" && css.primary, look === "quiet" && css.quiet, look === "danger" && css.danger, small && css.small);

/** A button with words. `busy` shows that what it does is under way. */
export function Button({ look, small, icon, busy, children, className, disabled, ...rest }: ButtonProps) {
  return (
    <button type="button" {...rest} disabled={disabled || busy} className={classes(lookOf({ look, small }), className)}>
      {busy ? <Spinner /> : icon && <Icon name={icon} size={16} />}
      {children}
    </button>
  );
}

/** A button with an icon alone; `label` is its name, and shown on hover. */
export function IconButton({ label, icon, look = "quiet", small, className, ...rest }: ButtonProps & { label: string; icon: IconName }) {
  return (
    <button type="button" aria-label={label} title={label} {...rest} className={classes(lookOf({ look, small }), css.icon, className)}>
      <Icon name={icon} size={small ? 16 : 18} />
    </button>
  );
}

/** A link that looks like a button. */
export function LinkButton({ look, small, icon, children, className, ...rest }: AnchorHTMLAttributes<HTMLAnchorElement> & Look) {
  return (
    <a {...rest} className={classes(lookOf({ look, small }), className)}>
      {icon && <Icon name={icon} size={16} />}
      {children}
    </a>
  );
}

type Tone = "plain" | "good" | "bad" | "warn" | "accent";

export function Badge({ tone = "plain", children, title }: { tone?: Tone; children: ReactNode; title?: string }) {
  return (
    <span className={classes(css.badge, tone !== "plain" && css[tone])} title={title}>
      {children}
    </span>
  );
}

export function Spinner({ label }: { label?: string }) {
  return <span className={css.spinner} role={label ? "status" : undefined} aria-label={label} aria-hidden={label ? undefined : true} />;
}

/** What a list shows that has nothing: what would be here, and how it gets here. */
export function Empty({ icon, title, children, action }: { icon: IconName; title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className={css.empty}>
      <span className={css.pearl}>
        <Icon name={icon} size={22} />
      </span>
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {action}
    </div>
  );
}

/** What went wrong, in the words of whoever refused, and a way to try again. */
export function Trouble({ error, retry }: { error: unknown; retry?: () => void }) {
  return (
    <div className={css.notice} role="alert">
      <Icon name="warning" size={18} />
      <span className="grow">{inWords(error)}</span>
      {retry && (
        <Button small onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  );
}

export function Notice({ tone = "plain", icon = "info", children }: { tone?: "plain" | "warn"; icon?: IconName; children: ReactNode }) {
  return (
    <div className={classes(css.notice, css[tone])} role="status">
      <Icon name={icon} size={18} />
      <div className="grow">{children}</div>
    </div>
  );
}

/** Holds the place of what is being loaded, so that nothing moves when it comes. */
export function Skeleton({ height = 20, width = "100%" }: { height?: number | string; width?: number | string }) {
  // What fills the whole width has another height when it comes; see `.in-turn`.
  return <div className={css.skeleton} style={{ height, width }} data-waiting={width === "100%" || undefined} aria-hidden="true" />;
}

export function Field({ label, hint, children }: { label: string; hint?: string; children: ReactNode }) {
  return (
    <label className={css.field}>
      {label}
      {children}
      {hint && <span className="small">{hint}</span>}
    </label>
  );
}

export function Input({ className, ...rest }: InputHTMLAttributes<HTMLInputElement> & { ref?: Ref<HTMLInputElement> }) {
  return <input autoComplete="off" spellCheck={false} {...rest} className={classes(css.input, className)} />;
}

export function Key({ children }: { children: ReactNode }) {
  return <kbd className={css.key}>{children}</kbd>;
}

/** One of a few, side by side. */
export function Choice<T extends string>({ label, value, options, onChange }: { label: string; value: T; options: readonly { value: T; label: string; title?: string }[]; onChange: (value: T) => void }) {
  return (
    <div className={css.tabs} role="group" aria-label={label}>
      {options.map((option) => (
        <button key={option.value} type="button" title={option.title} aria-pressed={option.value === value} onClick={() => onChange(option.value)}>
          {option.label}
        </button>
      ))}
    </div>
  );
}
