// A menu where somebody asked for it: at the pointer, or at the line that has the focus.

import { useEffect, useRef } from "react";
import { classes } from "../../../ui/basics";
import { Icon } from "../../../ui/icons";
import type { MenuItem } from "../../../ui/overlay";
import ui from "../../../ui/ui.module.css";
import css from "./tree.module.css";

export interface MenuPlace {
  x: number;
  y: number;
  label: string;
  items: MenuItem[];
}

export function ContextMenu({ place, onClose }: { place: MenuPlace; onClose: () => void }) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const menu = list.current;
    if (!menu) return;
    menu.showPopover();
    menu.style.left = `${Math.max(8, Math.min(place.x, innerWidth - menu.offsetWidth - 8))}px`;
    menu.style.top = `${Math.max(8, Math.min(place.y, innerHeight - menu.offsetHeight - 8))}px`;
    menu.querySelector("button")?.focus();
    // Not left to the browser: it takes the button that is let go after a right click for one beside it.
    const outside = (event: Event) => menu.contains(event.target as Node) || onClose();
    addEventListener("pointerdown", outside);
    addEventListener("blur", onClose);
    return () => {
      removeEventListener("pointerdown", outside);
      removeEventListener("blur", onClose);
      if (menu.matches(":popover-open")) menu.hidePopover();
    };
  }, [place, onClose]);
  const press = (event: React.KeyboardEvent) => {
    event.stopPropagation();
    if (event.key === "Escape" || event.key === "Tab") {
      event.preventDefault();
      onClose();
    }
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const all = [...(list.current?.querySelectorAll<HTMLButtonElement>("button:not(:disabled)") ?? [])];
    all[(all.indexOf(document.activeElement as HTMLButtonElement) + by + all.length) % all.length]?.focus();
  };
  return (
    <div ref={list} popover="manual" role="menu" aria-label={place.label} className={classes(ui.menu, css.menu)} onKeyDown={press}>
      {place.items.map((item) => (
        <button
          key={item.label}
          type="button"
          role="menuitem"
          disabled={item.disabled}
          className={classes(item.danger && ui.danger)}
          onClick={() => {
            onClose();
            item.act();
          }}
        >
          {item.icon && <Icon name={item.icon} size={16} />}
          {item.label}
        </button>
      ))}
    </div>
  );
}
