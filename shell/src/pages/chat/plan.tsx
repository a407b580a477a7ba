// What is to be done and how far it is, above the composer.

import { useId, useState } from "react";
import { classes, Spinner } from "../../ui/basics";
import { Icon } from "../../ui/icons";
import type { PlanEntry } from "./events";
import css from "./plan.module.css";

const STATUS: Record<PlanEntry["status"], string> = { pending: "To do", in_progress: "Under way", completed: "Done" };

export function Plan({ plan, working }: { plan: readonly PlanEntry[]; working: boolean }) {
  const [open, setOpen] = useState(false);
  const id = useId();
  if (plan.length === 0) return null;
  const done = plan.filter(({ status }) => status === "completed").length;
  const now = plan.find(({ status }) => status === "in_progress") ?? plan.find(({ status }) => status === "pending");
  return (
    <section className={css.plan} aria-label="What is to be done">
      <button type="button" className={css.head} aria-expanded={open} aria-controls={id} onClick={() => setOpen(!open)}>
        <Icon name={open ? "down" : "chevron"} size={15} />
        <span className={css.count}>
          {done} of {plan.length} done
        </span>
        {!open && now && <span className="cut-off soft">{now.content}</span>}
        <span className={css.meter} aria-hidden="true">
          <span style={{ width: `${(done / plan.length) * 100}%` }} />
        </span>
      </button>
      <ol id={id} className={css.list} hidden={!open}>
        {plan.map((entry, index) => (
          <li key={index} className={classes(css[entry.status])}>
            {entry.status === "completed" ? <Icon name="check" size={16} /> : entry.status === "in_progress" && working ? <Spinner /> : <Icon name="dot" size={16} />}
            <span className="unseen">{STATUS[entry.status]}: </span>
            <span>{entry.content}</span>
            {entry.priority === "high" && entry.status !== "completed" && <span className={css.high}>first</span>}
          </li>
        ))}
      </ol>
    </section>
  );
}
