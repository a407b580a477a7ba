// What lies over the page: dialogs, menus and short messages. All of it is the browser's own top layer,
// so focus stays inside, Escape closes, and nothing needs a z-index.

import { useEffect, useId, useRef, useSyncExternalStore, type ReactNode, type RefObject } from "react";
import { inWords } from "../api/client";
import { Button, classes, IconButton } from "./basics";
import { Icon, type IconName } from "./icons";
import css from "./ui.module.css";

/**
 * A dialog that is closed by what it was asked for goes away while it is open, and browsers then forget
 * where the keys were: they go back there, unless they have gone elsewhere.
 */
export function useReturn(open: boolean, dialog: RefObject<HTMLElement | null>): void {
  const before = useRef<Element | null>(null);
  useEffect(() => {
    if (!open) return;
    const now = document.activeElement;
    if (!dialog.current?.contains(now)) before.current = now;
    return () => {
      const nowhere = document.activeElement === null || document.activeElement === document.body;
      if (nowhere && before.current instanceof HTMLElement) before.current.focus();
    };
  }, [open, dialog]);
}

interface DialogProps {
  title: string;
  open: boolean;
  onClose: () => void;
  children: ReactNode;
  acts?: ReactNode;
  wide?: boolean;
}

export function Dialog({ title, open, onClose, children, acts, wide }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const name = useId();
  useReturn(open, dialog);
  useEffect(() => {
    if (!open) return;
    dialog.current?.showModal();
    // React has no such attribute in the page, so the dialog would begin at its first button.
    dialog.current?.querySelector<HTMLElement>("[data-first]")?.focus();
  }, [open]);
  if (!open) return null;
  return (
    <dialog
      ref={dialog}
      className={css.dialog}
      aria-labelledby={name}
      style={wide ? { width: "min(960px, calc(100vw - 24px))" } : undefined}
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      <div className={css.dialogHead}>
        <h2 id={name}>{title}</h2>
        <IconButton label="Close" icon="close" small onClick={onClose} />
      </div>
      <div className={css.dialogBody}>{children}</div>
      {acts && <div className={css.dialogActs}>{acts}</div>}
    </dialog>
  );
}

export interface MenuItem {
  label: string;
  icon?: IconName;
  danger?: boolean;
  disabled?: boolean;
  act: () => void;
}

/** A button that opens a list of things to do. */
export function Menu({ label, items, icon = "more", small = true }: { label: string; items: MenuItem[]; icon?: IconName; small?: boolean }) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const anchor = useRef<HTMLButtonElement>(null);
  const place = () => {
    const [from, menu] = [anchor.current?.getBoundingClientRect(), list.current];
    if (!from || !menu) return;
    const below = from.bottom + menu.offsetHeight + 8 < innerHeight;
    menu.style.top = `${below ? from.bottom + 4 : Math.max(8, from.top - menu.offsetHeight - 4)}px`;
    menu.style.left = `${Math.max(8, Math.min(from.left, innerWidth - menu.offsetWidth - 8))}px`;
    menu.querySelector("button")?.focus();
  };
  const step = (event: React.KeyboardEvent, by: number) => {
    const all = [...(list.current?.querySelectorAll<HTMLButtonElement>("button:not(:disabled)") ?? [])];
    const next = all[(all.indexOf(document.activeElement as HTMLButtonElement) + by + all.length) % all.length];
    next?.focus();
    event.preventDefault();
  };
  return (
    <>
      <IconButton ref={anchor} label={label} icon={icon} small={small} popoverTarget={id} aria-haspopup="menu" />
      <div
        id={id}
        ref={list}
        popover="auto"
        role="menu"
        aria-label={label}
        className={css.menu}
        onToggle={(event) => event.nativeEvent.newState === "open" && place()}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") step(event, 1);
          if (event.key === "ArrowUp") step(event, -1);
        }}
      >
        {items.map((item) => (
          <button
            key={item.label}
            type="button"
            role="menuitem"
            disabled={item.disabled}
            className={classes(item.danger && css.danger)}
            onClick={() => {
              list.current?.hidePopover();
              item.act();
            }}
          >
            {item.icon && <Icon name={item.icon} size={16} />}
            {item.label}
          </button>
        ))}
      </div>
    </>
  );
}

interface Toast {
  id: number;
  words: string;
  tone: "plain" | "bad";
  action?: { label: string; act: () => void } | undefined;
}

let toasts: Toast[] = [];
let next = 1;
const watchers = new Set<() => void>();

function show(list: Toast[]): void {
  toasts = list;
  watchers.forEach((watcher) => watcher());
}

const dismiss = (id: number) => show(toasts.filter((toast) => toast.id !== id));

/** Says something that needs no answer, for a few seconds. */
export function say(words: string, action?: Toast["action"], tone: Toast["tone"] = "plain"): void {
  const id = next++;
  show([...toasts.slice(-3), { id, words, tone, action }]);
  setTimeout(() => dismiss(id), action || tone === "bad" ? 9000 : 4500);
}

/** Says what went wrong with something that was asked for. */
export const sayError = (error: unknown) => say(inWords(error), undefined, "bad");

export function Toasts() {
  const list = useSyncExternalStore(
    (watcher) => (watchers.add(watcher), () => void watchers.delete(watcher)),
    () => toasts,
  );
  return (
    <div className={css.toasts} role="status" aria-live="polite">
      {list.map((toast) => (
        <div key={toast.id} className={css.toast} data-tone={toast.tone}>
          <span className="grow">{toast.words}</span>
          {toast.action && (
            <Button
              small
              onClick={() => {
                dismiss(toast.id);
                toast.action?.act();
              }}
            >
              {toast.action.label}
            </Button>
          )}
          <IconButton label="Dismiss" icon="close" small onClick={() => dismiss(toast.id)} />
        </div>
      ))}
    </div>
  );
}

/** Asks before something that cannot be taken back. */
export function Confirm({ title, open, words, act, danger, onClose }: { title: string; open: boolean; words: ReactNode; act: { label: string; run: () => void }; danger?: boolean; onClose: () => void }) {
  return (
    <Dialog
      title={title}
      open={open}
      onClose={onClose}
      acts={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look={danger ? "danger" : "primary"}
            data-first
            onClick={() => {
              act.run();
              onClose();
            }}
          >
            {act.label}
          </Button>
        </>
      }
    >
      <div>{words}</div>
    </Dialog>
  );
}
