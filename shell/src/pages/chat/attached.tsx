// The files that will go with the message, and where they are.

import { IconButton, Spinner } from "../../ui/basics";
import { baseName, size } from "../../ui/format";
import { Icon } from "../../ui/icons";
import type { Attachments } from "./attachments";
import css from "./composer.module.css";

export function Attached({ attachments }: { attachments: Attachments }) {
  if (attachments.files.length === 0) return null;
  return (
    <ul className={css.attached} aria-label="Attached files">
      {attachments.files.map(({ key, name, size: bytes, path, role, problem }) => (
        <li key={key} data-problem={problem !== null}>
          {problem !== null ? <Icon name="warning" size={15} /> : path === null ? <Spinner label={`${name} is on its way`} /> : <Icon name="attach" size={15} />}
          <span className="cut-off" title={path ?? name}>
            {path === null ? name : baseName(path)}
          </span>
          <span className={css.where}>{problem ?? (path === null ? size(bytes) : `in uploads of ${role}`)}</span>
          <IconButton small label={`Leave ${name} out`} icon="close" onClick={() => attachments.drop(key)} />
        </li>
      ))}
    </ul>
  );
}
