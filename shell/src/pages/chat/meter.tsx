// What the conversation has taken so far.

import { count, dollars, short } from "../../ui/format";
import css from "./composer.module.css";
import type { View } from "./view";

export function Meter({ spent }: { spent: Pick<View, "replies" | "used" | "dollars"> }) {
  if (spent.replies === 0) return null;
  const { input, output, cached = 0 } = spent.used;
  const tokens = `${input.toLocaleString("en")} tokens read (${cached.toLocaleString("en")} of them kept by the service), ${output.toLocaleString("en")} written`;
  return (
    <span className={css.meter} title={tokens}>
      <span className="unseen">This conversation so far: </span>
      {count(spent.replies, "step")} · {short(input + output)} tokens{spent.dollars !== null && ` · ${dollars(spent.dollars)}`}
    </span>
  );
}
