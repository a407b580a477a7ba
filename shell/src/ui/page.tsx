// The frame that every page has: a bar with its name and what it offers, and its content below.

import type { ReactNode } from "react";
import { classes } from "./basics";
import css from "./page.module.css";

export function PageFrame({ title, acts, children, flush }: { title: ReactNode; acts?: ReactNode; children: ReactNode; /** No padding, and the content scrolls by itself. */ flush?: boolean }) {
  return (
    <div className={css.page}>
      <header className={css.bar}>
        <h1 className="cut-off">{title}</h1>
        {acts && <div className={css.acts}>{acts}</div>}
      </header>
      <div className={flush ? css.flush : classes(css.content, "in-turn")}>{children}</div>
    </div>
  );
}
