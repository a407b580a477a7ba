// Icons as strokes on a grid of 24. They never speak: whatever has one has a label of its own.

const PATHS = {
  chat: "M4 6.5A2.5 2.5 0 0 1 6.5 4h11A2.5 2.5 0 0 1 20 6.5v7a2.5 2.5 0 0 1-2.5 2.5H11l-4.5 4v-4A2.5 2.5 0 0 1 4 13.5z",
  files: "M3 7a2 2 0 0 1 2-2h4l2 2.5h8a2 2 0 0 1 2 2V17a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2z",
  file: "M6 3h8l5 5v11a2 2 0 0 1-2 2H7a2 2 0 0 1-2-2V5a2 2 0 0 1 1-2zM14 3v5h5",
  link: "M10 14a4 4 0 0 0 5.7 0l3-3a4 4 0 0 0-5.7-5.7l-1 1M14 10a4 4 0 0 0-5.7 0l-3 3a4 4 0 0 0 5.7 5.7l1-1",
  timeline: "M12 7v5l3 2M3.5 12a8.5 8.5 0 1 0 2.6-6.1L3.5 8.2M3.5 4v4.2h4.2",
  terminal: "M4 5h16v14H4zM8 10l2.5 2.5L8 15M13 15h4",
  roles: "M7 4v9a4 4 0 0 0 4 4h6M14 13.5l3.5 3.5-3.5 3.5M17 4v4M17 8a2 2 0 1 0 0 .01M7 4a2 2 0 1 0 0 .01",
  runs: "M6 4.5v15l12-7.5z",
  usage: "M4 20V10M10 20V4M16 20v-7M22 20H2",
  network: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18",
  settings: "M4 7h10M18 7h2M4 17h2M10 17h10M16 5v4M8 15v4",
  search: "M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.5 15.5 20 20",
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6 6 18",
  check: "M5 12.5l4.5 4.5L19 7.5",
  chevron: "M9 6l6 6-6 6",
  down: "M6 9l6 6 6-6",
  undo: "M8 4 4 8l4 4M4 8h10a6 6 0 0 1 0 12h-4",
  redo: "M16 4l4 4-4 4M20 8H10a6 6 0 0 0 0 12h4",
  stop: "M7 7h10v10H7z",
  send: "M5 12h13M12.5 6l6 6-6 6",
  attach: "M18 11.5 11 18.5a4.2 4.2 0 0 1-6-6l8-8a2.8 2.8 0 0 1 4 4l-8 8a1.4 1.4 0 0 1-2-2l7-7",
  fork: "M6 3v18M6 13h6a6 6 0 0 0 6-6V3M15 6l3-3 3 3",
  edit: "M4 20h4L19 9l-4-4L4 16z",
  trash: "M4 7h16M9 7V4h6v3M6.5 7l1 13h9l1-13",
  download: "M12 4v11M7 10.5l5 5 5-5M4 20h16",
  upload: "M12 16V5M7 9.5l5-5 5 5M4 20h16",
  refresh: "M20 12a8 8 0 1 1-2.3-5.6L20 8.6M20 4v4.6h-4.6",
  warning: "M12 4 2.5 20h19zM12 10v4M12 17v.01",
  info: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 11v5M12 8v.01",
  dot: "M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6z",
  more: "M5 12v.01M12 12v.01M19 12v.01",
  dock: "M4 5h16v14H4zM14 5v14",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6 19 19M19 5l-1.4 1.4M6.4 17.6 5 19",
  moon: "M20 14.5A8.5 8.5 0 1 1 9.5 4a6.8 6.8 0 0 0 10.5 10.5z",
  play: "M7 5v14l11-7z",
  pause: "M8 5v14M16 5v14",
  external: "M14 4h6v6M20 4l-9 9M18 14v5a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V7a1 1 0 0 1 1-1h5",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  memory: "M12 4a5 5 0 0 0-5 5 4 4 0 0 0-1 7.5A3.5 3.5 0 0 0 12 19zM12 4a5 5 0 0 1 5 5 4 4 0 0 1 1 7.5A3.5 3.5 0 0 1 12 19z",
  user: "M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM4.5 20a7.5 7.5 0 0 1 15 0",
  agent: "M12 3v3M7 6h10a2 2 0 0 1 2 2v7a3 3 0 0 1-3 3H8a3 3 0 0 1-3-3V8a2 2 0 0 1 2-2zM9.5 11v1M14.5 11v1M9 21h6",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth={1.7}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      style={{ flex: "none" }}
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
