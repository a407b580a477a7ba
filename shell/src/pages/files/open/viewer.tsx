// What is open: a text to edit, something to look at, a folder, or what to say when there is nothing.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { Refusal } from "../../../api/client";
import { useEvent, type Message } from "../../../api/events";
import { go, read, to } from "../../../app/router";
import { Skeleton, Trouble } from "../../../ui/basics";
import type { Acts } from "../acts/use-acts";
import { exists, MOST_BYTES, stat, type Stat } from "../calls";
import { draftOf, draftPaths, moveDrafts } from "../drafts";
import css from "../files.module.css";
import { whereabouts } from "../followed";
import { plain, relative } from "../paths";
import { FileBar } from "./bar";
import { FolderView } from "./folder";
import { MediaView } from "./media";
import { mediaOf } from "./media-types";
import { Lately, Missing, NotShown } from "./notes";
import { TextFile } from "./text-file";

export interface ViewerProps {
  path: string;
  query: URLSearchParams;
  acts: Acts;
  onUpload: (folder: string) => void;
  onUploadFolder: (folder: string) => void;
  onBack: () => void;
}

export function Viewer(props: ViewerProps) {
  const { path } = props;
  const found = useQuery({ queryKey: ["files", "stat", path], queryFn: () => stat(path), enabled: path !== "" });
  useFollowed(path);
  if (path === "") return <Lately />;
  // A text that was changed and not saved stays, whatever became of its file.
  const gone = isMissing(found.error) && !draftOf(path);
  if (found.data && !gone) return <Found {...props} stat={found.data} />;
  return (
    <>
      <FileBar path={path} onBack={props.onBack} />
      <div className={css.body}>{found.error ? <NotFound {...props} error={found.error} retry={() => void found.refetch()} /> : <Skeleton height={200} />}</div>
    </>
  );
}

const isMissing = (error: unknown) => error instanceof Refusal && (error.status === 404 || error.kind === "not_directory");

function NotFound({ path, error, retry }: ViewerProps & { error: unknown; retry: () => void }) {
  return isMissing(error) ? <Missing path={path} /> : <Trouble error={error} retry={retry} />;
}

function Found({ stat, ...props }: ViewerProps & { stat: Stat }) {
  const { path, query, acts, onBack } = props;
  const media = mediaOf(path);
  if (stat.kind === "directory") return <FolderView {...props} />;
  if (stat.kind !== "file") return <NotShown path={path} stat={stat} acts={acts} onBack={onBack} why="This is not a file that holds something, but a door to a program." download={false} />;
  if (media && !(media.text && query.get("as") === "text")) return <MediaView path={path} stat={stat} media={media} acts={acts} onBack={onBack} />;
  if (stat.size > MOST_BYTES) return <NotShown path={path} stat={stat} acts={acts} onBack={onBack} why="It is too large to be edited here." />;
  const line = Number(query.get("line")) || undefined;
  return <TextFile path={path} stat={stat} line={line} acts={acts} onBack={onBack} asPicture={media?.text ? () => go(to("files", path)) : undefined} />;
}

/** Asks again when it changes, and goes along when it is moved. */
function useFollowed(path: string): void {
  const client = useQueryClient();
  const hear = useCallback(
    ({ changes }: Message<"files">) => {
      for (const kept of new Set([path, ...draftPaths()])) {
        const now = whereabouts(kept, changes);
        if (kept !== "" && now !== kept) void goAlong(kept, now, kept === path);
      }
      if (!changes.some((change) => relative(change.path) === path)) return;
      void client.invalidateQueries({ queryKey: ["files", "stat", path] });
      void client.invalidateQueries({ queryKey: ["files", "text", path] });
    },
    [client, path],
  );
  useEvent("files", hear);
}

/** One save may be told in two messages: whether the old name is really gone, the computer knows. */
async function goAlong(from: string, into: string, open: boolean): Promise<void> {
  if (await exists(from).catch(() => true)) return;
  moveDrafts(from, into);
  // Nobody is called back who went elsewhere meanwhile.
  const place = read(location.hash);
  if (open && place.page === "files" && plain(place.rest) === from) go(to("files", into), "replace");
}
