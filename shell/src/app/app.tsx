// The frame of the desktop: the rail, the page, the chat beside it, and what lies over them.

import { Suspense, useEffect, useState } from "react";
import { gateway, role } from "../api/mount";
import { useConnection } from "../api/events";
import { Chat } from "../pages/chat/chat";
import { Badge, classes, IconButton, Skeleton } from "../ui/basics";
import { Icon } from "../ui/icons";
import { Toasts } from "../ui/overlay";
import css from "./app.module.css";
import { Boundary } from "./boundary";
import { useKeys } from "./keys";
import { Palette } from "./palette";
import { PAGES, pageOf } from "./pages";
import { prefer, usePreferences } from "./preferences";
import { to, usePlace } from "./router";
import { useFreshness } from "./freshness";

export function App() {
  const place = usePlace();
  const page = pageOf(place.page);
  const preferences = usePreferences();
  const [palette, setPalette] = useState(false);
  const [more, setMore] = useState(false);
  useFreshness();
  useKeys({ palette: () => setPalette(true) });
  useEffect(() => {
    document.title = `${page.name} – Nacre${role === "dev" ? " (dev)" : ""}`;
    setMore(false);
  }, [page, place.rest]);
  const docked = preferences.dock && page.id !== "chat";
  const Shown = page.show;
  return (
    <div className={classes(css.frame, preferences.rail === "names" && css.named)}>
      <a className={css.skip} href="#main" onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>
        Skip to the page
      </a>
      <Rail current={page.id} more={more} onMore={() => setMore(!more)} onSearch={() => setPalette(true)} />
      <main id="main" className={css.main} tabIndex={-1} aria-label={page.name}>
        <Banner />
        <Boundary key={page.id}>
          <Suspense fallback={<Loading />}>
            <Shown rest={place.rest} query={place.query} />
          </Suspense>
        </Boundary>
      </main>
      {docked && (
        <aside className={css.dock} style={{ width: preferences.dockWidth }} aria-label="Chat">
          <Grip width={preferences.dockWidth} />
          <Boundary>
            <Chat rest="" query={new URLSearchParams()} docked />
          </Boundary>
        </aside>
      )}
      <Palette open={palette} onClose={() => setPalette(false)} />
      <Toasts />
    </div>
  );
}

function Rail({ current, more, onMore, onSearch }: { current: string; more: boolean; onMore: () => void; onSearch: () => void }) {
  const { dock } = usePreferences();
  return (
    <nav className={classes(css.rail, more && css.open)} aria-label="Desktop">
      <a className={css.mark} href={to("chat")} aria-label="Nacre, chat" title="Nacre" />
      <ul className={css.pages}>
        {PAGES.map((page) => (
          <li key={page.id} className={classes(!page.first && css.later)}>
            <a href={to(page.id)} aria-current={page.id === current ? "page" : undefined} title={`${page.name} (g ${page.key})`}>
              <Icon name={page.icon} size={21} />
              <span>{page.name}</span>
            </a>
          </li>
        ))}
      </ul>
      <div className={css.end}>
        <IconButton label="Search and commands (Ctrl K)" icon="search" onClick={onSearch} />
        <IconButton className={css.wideOnly} label={dock ? "Put the chat away" : "Chat beside the page"} icon="dock" aria-pressed={dock} onClick={() => prefer({ dock: !dock })} />
        <IconButton className={css.narrowOnly} label="More pages" icon="more" aria-expanded={more} onClick={onMore} />
        {role === "dev" && <Badge tone="warn">dev</Badge>}
      </div>
    </nav>
  );
}

/** What is not as it should be, in one line above the page. */
function Banner() {
  const connection = useConnection();
  const [late, setLate] = useState(false);
  useEffect(() => {
    // A moment without a connection is not worth a word.
    const timer = setTimeout(() => setLate(connection === "lost" || connection === "connecting"), 1500);
    return () => clearTimeout(timer);
  }, [connection]);
  const { nacre, reason } = document.documentElement.dataset;
  if (connection === "signed-out") {
    return (
      <p className={css.banner} role="alert">
        You were signed out. <a href={gateway("/login").href}>Sign in again</a>
      </p>
    );
  }
  if (late && connection !== "open") {
    return (
      <p className={css.banner} role="status">
        Your computer cannot be reached; trying again. What is shown may be old.
      </p>
    );
  }
  if (nacre === "built") return <p className={css.banner} data-calm role="status">{BUILT[reason ?? ""] ?? BUILT.none}</p>;
  return null;
}

const BUILT: Record<string, string> = {
  starting: "This is the copy that came with Nacre; yours is starting.",
  failed: "This is the copy that came with Nacre: yours does not start. Undo the last change, or look at its log in the rescue page.",
  "no-node": "This is the copy that came with Nacre: there is no Node.js in the sandbox to run yours.",
  chosen: "This is the copy that came with Nacre, as nacre.toml asks.",
  none: "This is the copy that came with Nacre.",
};

function Grip({ width }: { width: number }) {
  const drag = (event: React.PointerEvent) => {
    const [start, element] = [event.clientX, event.currentTarget];
    element.setPointerCapture(event.pointerId);
    const move = (moved: Event) => prefer({ dockWidth: clamp(width + start - (moved as PointerEvent).clientX) });
    element.addEventListener("pointermove", move);
    element.addEventListener("pointerup", () => element.removeEventListener("pointermove", move), { once: true });
  };
  const keys = (event: React.KeyboardEvent) => {
    if (event.key === "ArrowLeft") prefer({ dockWidth: clamp(width + 24) });
    if (event.key === "ArrowRight") prefer({ dockWidth: clamp(width - 24) });
  };
  return <div className={css.grip} role="separator" aria-label="Width of the chat" aria-orientation="vertical" aria-valuenow={width} tabIndex={0} onPointerDown={drag} onKeyDown={keys} />;
}

const clamp = (width: number) => Math.min(Math.max(width, 300), Math.max(300, innerWidth - 480));

function Loading() {
  return (
    <div className={css.loading} role="status" aria-label="Loading">
      <Skeleton height={28} width={180} />
      <Skeleton height={120} />
      <Skeleton height={120} />
    </div>
  );
}
