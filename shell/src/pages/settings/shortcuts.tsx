// Every key of the desktop.

import { PAGES } from "../../app/pages";
import { Key } from "../../ui/basics";
import { Panel } from "../../ui/panel";
import css from "./settings.module.css";

type Shortcut = readonly [keys: readonly string[], what: string];

const GROUPS: readonly { title: string; about?: string; keys: readonly Shortcut[] }[] = [
  {
    title: "Everywhere",
    keys: [
      [["Ctrl", "K"], "Search and commands"],
      [["?"], "Search and commands, when you are not typing"],
      [["Esc"], "Close what lies over the page"],
    ],
  },
  {
    title: "Pages",
    about: "One key after the other, when you are not typing.",
    keys: PAGES.map(({ key, name }) => [["g", key], name] as const),
  },
  {
    title: "Terminal",
    keys: [
      [["Ctrl", "Shift", "C"], "Copy what is selected"],
      [["Ctrl", "Shift", "V"], "Paste"],
      [["Ctrl", "Shift", "↑"], "Leave the shell, up to the tabs"],
      [["←", "→"], "From tab to tab"],
      [["↓"], "From the tabs into the shell"],
      [["F2"], "Rename the tab"],
      [["Del"], "Close the tab, and end its shell"],
      [["Ctrl", "Shift", "+"], "Larger letters"],
      [["Ctrl", "Shift", "-"], "Smaller letters"],
    ],
  },
];

export function Shortcuts() {
  return GROUPS.map(({ title, about, keys }) => (
    <Panel key={title} title={title} about={about}>
      <dl className={css.keys}>
        {keys.map(([combination, what]) => (
          <div key={what}>
            <dt>
              {combination.map((key) => (
                <Key key={key}>{key}</Key>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Panel>
  ));
}
