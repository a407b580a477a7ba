// Whether changes are recorded, and if not, why.

import { useQuery } from "@tanstack/react-query";
import { Notice } from "../../ui/basics";
import { status } from "./calls";
import css from "./timeline.module.css";

const SOON = 10_000;

export function HistoryNotice() {
  const { data } = useQuery({
    queryKey: ["history", "status"],
    queryFn: status,
    // What is not as it should be is looked at until it is.
    refetchInterval: (query) => (query.state.data?.state.state === "recording" ? false : SOON),
  });
  if (!data) return null;
  const { state, set_aside: aside } = data;
  const words = [noteOf(state), aside ? `An older history was damaged and could not be read. It is kept as ${aside}; this one began after it.` : null].filter((note) => note !== null);
  if (words.length === 0) return null;
  const calm = state.state === "starting" && !aside;
  return (
    <div className={css.notices}>
      {words.map((note) => (
        <Notice key={note} tone={calm ? "plain" : "warn"} icon={calm ? "info" : "warning"}>
          {note}
        </Notice>
      ))}
    </div>
  );
}

type State = Awaited<ReturnType<typeof status>>["state"];

function noteOf(state: State): string | null {
  switch (state.state) {
    case "recording":
      return null;
    case "starting":
      return "Looking at all files for the first time. Changes are recorded from then on.";
    case "off":
      return `No history is kept here: ${state.why}.`;
    case "refusing":
      return `Changes are not being recorded: ${state.why}. What was recorded before is safe.${/space|quota|full/i.test(state.why) ? " Free some space, and recording goes on by itself." : ""}`;
  }
}
