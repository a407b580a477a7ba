// How far uploads are, what went wrong, and whether to replace what is there.

import { useEffect, useRef } from "react";
import { Button, IconButton } from "../../../ui/basics";
import { count, size } from "../../../ui/format";
import { Icon } from "../../../ui/icons";
import { Dialog } from "../../../ui/overlay";
import { nameOf } from "../paths";
import css from "./upload-panel.module.css";
import { clearUploads, stopUploads, useUploads, type Asking } from "./uploads";

const MOST_NAMES = 50;

export function UploadPanel() {
  const { uploads, asking } = useUploads();
  const total = uploads.reduce((sum, { file }) => sum + file.size, 0);
  const sent = uploads.reduce((sum, { sent }) => sum + sent, 0);
  const failed = uploads.filter(({ state }) => state === "failed");
  const left = uploads.filter(({ state }) => state === "waiting" || state === "going").length;
  return (
    <>
      {(left > 0 || failed.length > 0) && (
        <div className={css.panel} role="status">
          <div className="row">
            <Icon name="upload" size={16} />
            <span className="grow cut-off small">
              {left > 0 ? `Uploading ${uploads.length - left + 1} of ${uploads.length}` : `${count(failed.length, "file")} could not be uploaded`}
            </span>
            {left > 0 ? (
              <Button small look="quiet" onClick={stopUploads}>
                Stop
              </Button>
            ) : (
              <IconButton small label="Dismiss" icon="close" onClick={clearUploads} />
            )}
          </div>
          {left > 0 && (
            <>
              <progress className={css.progress} max={Math.max(total, 1)} value={sent} aria-label="Uploaded" />
              <span className="soft small">
                {size(sent)} of {size(total)}
              </span>
            </>
          )}
          {failed.length > 0 && (
            <ul className={css.failed}>
              {failed.slice(0, MOST_NAMES).map(({ path, why }) => (
                <li key={path}>
                  <strong>{nameOf(path)}</strong>: {why}
                </li>
              ))}
            </ul>
          )}
        </div>
      )}
      {asking && <Replace asking={asking} />}
    </>
  );
}

function Replace({ asking: { paths, answer } }: { asking: Asking }) {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => button.current?.focus(), []);
  return (
    <Dialog
      open
      title={paths.length === 1 ? `${nameOf(paths[0]!)} is there already` : `${count(paths.length, "file is", "files are")} there already`}
      onClose={() => answer(null)}
      acts={
        <>
          <Button onClick={() => answer(null)}>Cancel</Button>
          <Button onClick={() => answer("skip")}>Keep what is there</Button>
          <Button look="primary" ref={button} onClick={() => answer("replace")}>
            Replace
          </Button>
        </>
      }
    >
      <p>What is replaced stays in the history.</p>
      <ul className={css.names}>
        {paths.slice(0, MOST_NAMES).map((path) => (
          <li key={path}>{path}</li>
        ))}
        {paths.length > MOST_NAMES && <li>and {count(paths.length - MOST_NAMES, "more", "more")}</li>}
      </ul>
    </Dialog>
  );
}
