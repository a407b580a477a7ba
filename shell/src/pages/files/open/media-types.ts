// What a browser shows by itself, by the name of the file.

export type MediaKind = "image" | "pdf" | "audio" | "video";

export interface Media {
  kind: MediaKind;
  type: string;
  /** It is text as well, and can be opened as such. */
  text?: boolean;
}

const of = (kind: MediaKind, type: string): Media => ({ kind, type });

const ENDINGS: Record<string, Media> = {
  png: of("image", "image/png"),
  apng: of("image", "image/png"),
  jpg: of("image", "image/jpeg"),
  jpeg: of("image", "image/jpeg"),
  gif: of("image", "image/gif"),
  webp: of("image", "image/webp"),
  avif: of("image", "image/avif"),
  bmp: of("image", "image/bmp"),
  ico: of("image", "image/x-icon"),
  svg: { kind: "image", type: "image/svg+xml", text: true },
  pdf: of("pdf", "application/pdf"),
  mp3: of("audio", "audio/mpeg"),
  m4a: of("audio", "audio/mp4"),
  ogg: of("audio", "audio/ogg"),
  oga: of("audio", "audio/ogg"),
  opus: of("audio", "audio/ogg"),
  wav: of("audio", "audio/wav"),
  flac: of("audio", "audio/flac"),
  mp4: of("video", "video/mp4"),
  m4v: of("video", "video/mp4"),
  webm: of("video", "video/webm"),
  mov: of("video", "video/quicktime"),
};
// A map, so that a file called `x.constructor` is nothing special.
const TYPES = new Map(Object.entries(ENDINGS));

export const mediaOf = (path: string): Media | null => TYPES.get(/\.([^./]+)$/.exec(path)?.[1]?.toLowerCase() ?? "") ?? null;
