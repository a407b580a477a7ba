// A file as it was.

import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { LinkButton, Skeleton, Trouble } from "../../ui/basics";
import { CodeBlock } from "../../ui/code";
import { size as inBytes } from "../../ui/format";
import { Dialog } from "../../ui/overlay";
import { asText, MOST_BYTES } from "../files/calls";
import { mediaOf } from "../files/open/media-types";
import { nameOf } from "../files/paths";
import { bytesOf, versionAddress } from "./calls";
import css from "./detail.module.css";

export interface WhichVersion {
  path: string;
  /** The id of its content. */
  content: string;
  size: number;
  /** "after #12" */
  when: string;
}

export function VersionDialog({ version, onClose }: { version: WhichVersion; onClose: () => void }) {
  const { path, content, size, when } = version;
  return (
    <Dialog
      wide
      open
      title={`${nameOf(path)} ${when}`}
      onClose={onClose}
      acts={
        <LinkButton icon="download" href={versionAddress(content)} download={nameOf(path)}>
          Download
        </LinkButton>
      }
    >
      {size > MOST_BYTES ? <p>It had {inBytes(size)}, which is too much to be shown here.</p> : <Shown version={version} />}
    </Dialog>
  );
}

function Shown({ version: { path, content } }: { version: WhichVersion }) {
  const { data, error, refetch } = useQuery({ queryKey: ["version", content], queryFn: () => bytesOf(content), staleTime: Infinity });
  const text = useMemo(() => (data ? asText(data) : null), [data]);
  if (error) return <Trouble error={error} retry={() => void refetch()} />;
  if (!data) return <Skeleton height={240} />;
  const media = mediaOf(path);
  if (media?.kind === "image") return <Picture bytes={data} type={media.type} name={nameOf(path)} />;
  if (text === null) return <p>It is not text. You can download it as it was.</p>;
  return text === "" ? <p className="soft">It was empty.</p> : <CodeBlock text={text} name={nameOf(path)} />;
}

function Picture({ bytes, type, name }: { bytes: Uint8Array<ArrayBuffer>; type: string; name: string }) {
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([bytes], { type }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [bytes, type]);
  return url && <img className={css.image} src={url} alt={`${name} as it was`} />;
}
