// Pictures, documents, sound and film, shown by the browser.

import { useState } from "react";
import { go, to } from "../../../app/router";
import { Choice, LinkButton } from "../../../ui/basics";
import { size } from "../../../ui/format";
import { viewAddress, type Stat } from "../calls";
import type { Acts } from "../acts/use-acts";
import css from "../files.module.css";
import { nameOf } from "../paths";
import { FileBar } from "./bar";
import type { Media } from "./media-types";

interface Props {
  path: string;
  stat: Stat;
  media: Media;
  acts: Acts;
  onBack: () => void;
}

export function MediaView({ path, stat, media, acts, onBack }: Props) {
  const [measures, setMeasures] = useState("");
  const source = viewAddress(path, stat.etag);
  return (
    <>
      <FileBar path={path} onBack={onBack} acts={acts}>
        <span className={css.facts}>
          {measures && `${measures}, `}
          {size(stat.size)}
        </span>
        {media.text && <AsText path={path} shown="picture" />}
        {media.kind === "pdf" && (
          <LinkButton small icon="external" href={source} target="_blank" rel="noopener">
            In a new tab
          </LinkButton>
        )}
      </FileBar>
      {media.kind === "image" && <Picture key={source} source={source} name={nameOf(path)} onMeasures={setMeasures} />}
      {media.kind === "pdf" && <iframe className={css.document} src={source} title={nameOf(path)} />}
      {media.kind === "audio" && (
        <div className={css.picture}>
          <audio className={css.player} src={source} controls aria-label={nameOf(path)} />
        </div>
      )}
      {media.kind === "video" && (
        <div className={css.picture}>
          <video className={css.player} src={source} controls aria-label={nameOf(path)} />
        </div>
      )}
    </>
  );
}

const WAYS = [
  { value: "picture", label: "Picture" },
  { value: "text", label: "Text" },
] as const;

export function AsText({ path, shown }: { path: string; shown: "picture" | "text" }) {
  return <Choice label="Show it as" value={shown} options={WAYS} onChange={(way) => go(to("files", path, { as: way === "text" ? "text" : undefined }))} />;
}

function Picture({ source, name, onMeasures }: { source: string; name: string; onMeasures: (words: string) => void }) {
  const [whole, setWhole] = useState(false);
  const [broken, setBroken] = useState(false);
  if (broken) {
    return (
      <div className={css.picture}>
        <p className="soft">This picture cannot be shown. It may be damaged, or not be one.</p>
      </div>
    );
  }
  return (
    <div className={css.picture} data-whole={whole || undefined}>
      <img
        src={source}
        alt={name}
        title={whole ? "Fit it in" : "Show it at its size"}
        onClick={() => setWhole(!whole)}
        onLoad={({ currentTarget: { naturalWidth, naturalHeight } }) => naturalWidth > 0 && onMeasures(`${naturalWidth} × ${naturalHeight}`)}
        onError={() => setBroken(true)}
      />
    </div>
  );
}
