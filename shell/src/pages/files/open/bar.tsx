// The bar above what is open: where it is, and what can be done with it.

import type { ReactNode } from "react";
import { to } from "../../../app/router";
import { IconButton } from "../../../ui/basics";
import { Icon } from "../../../ui/icons";
import { Menu, type MenuItem } from "../../../ui/overlay";
import type { Acts } from "../acts/use-acts";
import css from "../files.module.css";
import { above, nameOf } from "../paths";

interface Props {
  path: string;
  onBack: () => void;
  /** What everything has in common can be done with it when this is there. */
  acts?: Acts;
  folder?: boolean;
  children?: ReactNode;
  items?: readonly MenuItem[];
}

export function FileBar({ path, onBack, acts, folder = false, children, items = [] }: Props) {
  const common: MenuItem[] = acts
    ? [
        { label: folder ? "Download as tar" : "Download", icon: "download", act: () => acts.download(path, folder) },
        { label: "History", icon: "timeline", act: () => (location.hash = to("timeline", "", { path })) },
        { label: "Rename or move", icon: "edit", act: () => acts.rename(path) },
        { label: "Copy", icon: "copy", act: () => acts.copy(path) },
        { label: "Delete", icon: "trash", danger: true, act: () => acts.remove(path) },
      ]
    : [];
  return (
    <header className={css.bar}>
      <IconButton className={css.back} label="Back to the tree" icon="chevron" style={{ rotate: "180deg" }} onClick={onBack} />
      <nav className="grow" aria-label="Where it is">
        <ol className={css.crumbs}>
          {above(path).map((parent) => (
            <li key={parent}>
              <a className="cut-off" href={to("files", parent)}>
                {nameOf(parent)}
              </a>
              <Icon name="chevron" size={12} />
            </li>
          ))}
          <li>
            <h2 className={`cut-off ${css.name}`} title={path}>
              {nameOf(path)}
            </h2>
          </li>
        </ol>
      </nav>
      {children}
      {common.length > 0 && <Menu label={`What to do with ${nameOf(path)}`} small={false} items={[...items, ...common]} />}
    </header>
  );
}
