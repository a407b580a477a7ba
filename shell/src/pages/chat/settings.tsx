// How a conversation is set: what it may do, where it acts and which model it asks.

import { useId, useRef, useState, type FormEvent } from "react";
import { Button, Choice, classes, Field, Input } from "../../ui/basics";
import { useModels, useRoles, type Mode, type Settings } from "./calls";
import css from "./composer.module.css";

const MODES: readonly { value: Mode; label: string; title: string }[] = [
  { value: "plan", label: "Plan", title: "Look, and change nothing" },
  { value: "ask", label: "Ask", title: "Ask before each change and each command" },
  { value: "auto", label: "Auto", title: "Change what the task needs; every change can be undone" },
];

interface Props {
  settings: Settings;
  /** Where it acts now. */
  actsOn: string;
  /** The model that was asked last. */
  asked?: string | undefined;
  onChange: (change: Partial<Settings>) => void;
}

export function SettingsBar({ settings, actsOn, asked, onChange }: Props) {
  return (
    <>
      <div className={css.modes}>
        <Choice label="What it may do" value={settings.mode} options={MODES} onChange={(mode) => onChange({ mode })} />
      </div>
      <Where settings={settings} actsOn={actsOn} asked={asked} onChange={onChange} />
    </>
  );
}

export const PANEL = "conversation-settings";

/** A button that tells role and model, and opens what changes them. */
function Where({ settings, actsOn, asked, onChange }: Props) {
  const { data: models } = useModels();
  const anchor = useRef<HTMLButtonElement>(null);
  const panel = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState(false);
  const model = settings.model ?? models?.models.find((one) => one.default)?.model ?? asked;
  const place = () => {
    const [from, element] = [anchor.current?.getBoundingClientRect(), panel.current];
    if (!from || !element) return;
    element.style.top = `${Math.max(8, from.top - element.offsetHeight - 6)}px`;
    element.style.left = `${Math.max(8, Math.min(from.left, innerWidth - element.offsetWidth - 8))}px`;
  };
  return (
    <>
      <Button ref={anchor} small look="quiet" className={css.choose} popoverTarget={PANEL} aria-haspopup="dialog" title="Where it acts and which model it asks">
        <span>
          {actsOn}
          {model && <span className={css.model}> · {model.split("/").at(-1)}</span>}
        </span>
      </Button>
      <div
        id={PANEL}
        ref={panel}
        popover="auto"
        role="dialog"
        aria-label="Where it acts and which model it asks"
        className={css.panel}
        onToggle={(event) => {
          const now = event.nativeEvent.newState === "open";
          setOpen(now);
          if (now) requestAnimationFrame(place);
        }}
      >
        {open && <Panel settings={settings} onChange={onChange} close={() => panel.current?.hidePopover()} />}
      </div>
    </>
  );
}

function Panel({ settings, onChange, close }: Omit<Props, "actsOn"> & { close: () => void }) {
  const { data: roles } = useRoles();
  return (
    <>
      <Field label="Acts on" hint="From the next turn on">
        <select className={css.select} value={settings.role ?? ""} onChange={(event) => onChange({ role: event.target.value })}>
          {!settings.role && <option value="">dev, when there is one</option>}
          <option value="live">live</option>
          <option value="dev" disabled={roles !== undefined && !roles.dev && settings.role !== "dev"}>
            dev{roles !== undefined && !roles.dev ? " (there is none)" : ""}
          </option>
        </select>
      </Field>
      <ModelField settings={settings} onChange={onChange} close={close} />
    </>
  );
}

function ModelField({ settings, onChange, close }: Omit<Props, "actsOn"> & { close: () => void }) {
  const { data: known } = useModels();
  const [name, setName] = useState(settings.model ?? "");
  const list = useId();
  const usual = known?.models.find((one) => one.default)?.model;
  const problem = known?.models.find(({ model }) => model === name)?.problem;
  const use = (event: FormEvent) => {
    event.preventDefault();
    if (name.trim() && name.trim() !== settings.model) onChange({ model: name.trim() });
    close();
  };
  const hint = problem ?? (usual ? `Without one, ${usual}` : known?.providers.length ? `provider/model, of ${known.providers.map((provider) => provider.name).join(", ")}` : "As provider/model, such as openai/gpt-4o");
  return (
    <form className={classes("column")} onSubmit={use}>
      <Field label="Model" hint={hint}>
        <Input autoFocus={matchMedia("(pointer: fine)").matches} value={name} list={list} placeholder={usual ?? "provider/model"} onChange={(event) => setName(event.target.value)} />
      </Field>
      <datalist id={list}>
        {known?.models.map(({ model }) => <option key={model} value={model} />)}
        {known?.providers.map((provider) => <option key={provider.name} value={`${provider.name}/`} />)}
      </datalist>
      <Button look="primary" type="submit" small disabled={name.trim() === ""}>
        Use this model
      </Button>
    </form>
  );
}
