// Two versions of a text side by side, or one above the other where there is no room.

import { MergeView, unifiedMergeView } from "@codemirror/merge";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { useEffect, useRef } from "react";
import css from "./conflict.module.css";
import { endingOf } from "./document";
import { languageOf, looks, setup } from "./setup";

interface Props {
  path: string;
  theirs: string;
  mine: string;
  onMine: (text: string) => void;
}

const NARROW = 640;

export default function Merge({ path, theirs, mine, onMine }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const tell = useRef(onMine);
  tell.current = onMine;
  const narrow = innerWidth < NARROW;
  useEffect(() => {
    const parent = frame.current;
    if (!parent) return;
    let end: (() => void) | undefined;
    let here = true;
    void Promise.resolve(languageOf(path)?.load()).then((support) => {
      if (!here) return;
      const language: Extension = support ?? [];
      const listen = EditorView.updateListener.of(({ docChanged, state }) => docChanged && tell.current(state.sliceDoc()));
      const editable = [setup(path, mine), language, listen, EditorView.lineWrapping];
      const fixed = [looks, language, EditorState.lineSeparator.of(endingOf(theirs)), EditorState.readOnly.of(true), EditorView.lineWrapping, EditorView.contentAttributes.of({ "aria-label": "On disk now" })];
      const view = narrow
        ? new EditorView({ parent, doc: mine, extensions: [editable, unifiedMergeView({ original: theirs, collapseUnchanged: {} })] })
        : new MergeView({ parent, a: { doc: theirs, extensions: fixed }, b: { doc: mine, extensions: editable }, revertControls: "a-to-b", renderRevertControl: takeOver, collapseUnchanged: {} });
      end = () => view.destroy();
    });
    return () => {
      here = false;
      end?.();
    };
  }, [path, theirs, mine, narrow]);
  return (
    <div>
      <div className={css.sides}>
        {narrow ? (
          <span>Yours, with what is on disk above it</span>
        ) : (
          <>
            <span>On disk now</span>
            <span>Yours</span>
          </>
        )}
      </div>
      <div ref={frame} className={css.merge} />
    </div>
  );
}

function takeOver(): HTMLElement {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "→";
  button.title = "Take this part over";
  button.setAttribute("aria-label", "Take this part over into yours");
  return button;
}
