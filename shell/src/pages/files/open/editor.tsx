// The editor. React makes its frame; what is inside is its own.

import { historyField } from "@codemirror/commands";
import { openSearchPanel } from "@codemirror/search";
import { Compartment, EditorState, type Text } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { useEffect, useRef, useState } from "react";
import { prefer, usePreferences } from "../../../app/preferences";
import { difference, endingOf, indentOf } from "./document";
import css from "./editor.module.css";
import { languageOf, setup } from "./setup";
import type { EditorHandle } from "./use-document";

interface Props {
  path: string;
  initial: string;
  /** The text that is saved. */
  base: string;
  line: number | undefined;
  onReady: (handle: EditorHandle) => void;
  onEdited: (dirty: boolean) => void;
}

/** Where the cursor was, what can be undone and how far it was scrolled, of files that were open. */
const left = new Map<string, { state: unknown; top: number }>();
const MOST_LEFT = 20;
const FIELDS = { history: historyField };

const toText = (text: string): Text => EditorState.create({ doc: text, extensions: EditorState.lineSeparator.of(endingOf(text)) }).doc;

function begin(path: string, text: string, extensions: Parameters<typeof EditorState.create>[0] & object): EditorState {
  const before = left.get(path);
  if (before) {
    const state = EditorState.fromJSON(before.state, extensions, FIELDS);
    if (state.sliceDoc() === text) return state;
  }
  return EditorState.create({ ...extensions, doc: text });
}

export default function Editor({ path, initial, base, line, onReady, onEdited }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const [wrapping] = useState(() => new Compartment());
  const [speaking] = useState(() => new Compartment());
  const { editorWrap } = usePreferences();
  const [place, setPlace] = useState({ line: 1, column: 1, selected: 0 });
  const saved = useRef<Text>(null);
  const told = useRef(onEdited);
  told.current = onEdited;

  useEffect(() => {
    if (!frame.current) return;
    const listen = EditorView.updateListener.of((update) => {
      if (update.docChanged) told.current(saved.current ? !update.state.doc.eq(saved.current) : true);
      if (update.docChanged || update.selectionSet) setPlace(placeIn(update.state));
    });
    const wrap = wrapping.of(editorWrap ? EditorView.lineWrapping : []);
    const made = new EditorView({ parent: frame.current, state: begin(path, initial, { extensions: [setup(path, initial), wrap, speaking.of([]), listen] }) });
    view.current = made;
    setPlace(placeIn(made.state));
    made.scrollDOM.scrollTop = left.get(path)?.top ?? 0;
    void languageOf(path)?.load().then((support) => view.current === made && made.dispatch({ effects: speaking.reconfigure(support) }));
    onReady({
      text: () => made.state.sliceDoc(),
      replace: (text) => made.dispatch({ changes: inPlace(made.state, text) }),
      focus: () => made.focus(),
      find: () => void openSearchPanel(made),
    });
    return () => {
      left.delete(path);
      left.set(path, { state: made.state.toJSON(FIELDS), top: made.scrollDOM.scrollTop });
      if (left.size > MOST_LEFT) left.delete(left.keys().next().value!);
      view.current = null;
      made.destroy();
    };
    // A file that is opened again is another editor; its text is kept by `replace` from then on.
  }, [path, initial]);

  useEffect(() => {
    saved.current = toText(base);
    // The text may be what is saved already, or not any more.
    if (view.current) told.current(!view.current.state.doc.eq(saved.current));
  }, [base, initial]);
  useEffect(() => void view.current?.dispatch({ effects: wrapping.reconfigure(editorWrap ? EditorView.lineWrapping : []) }), [editorWrap, wrapping]);
  useEffect(() => {
    const editor = view.current;
    if (!editor || !line) return;
    const at = editor.state.doc.line(Math.min(line, editor.state.doc.lines));
    editor.dispatch({ selection: { anchor: at.from }, effects: EditorView.scrollIntoView(at.from, { y: "center" }) });
    editor.focus();
  }, [line, initial]);

  return (
    <>
      <div ref={frame} className={css.frame} />
      <footer className={css.foot}>
        <span>
          Line {place.line}, column {place.column}
          {place.selected > 0 && `, ${place.selected} selected`}
        </span>
        <span className="grow" />
        <span className={css.wide}>{languageOf(path)?.name ?? "Plain text"}</span>
        <span className={css.wide}>{indentOf(initial) === "\t" ? "Tabs" : `${indentOf(initial).length} spaces`}</span>
        {endingOf(initial) === "\r\n" && <span className={css.wide}>CRLF</span>}
        <button type="button" aria-pressed={editorWrap} onClick={() => prefer({ editorWrap: !editorWrap })}>
          Wrap lines
        </button>
      </footer>
    </>
  );
}

function placeIn(state: EditorState) {
  const { head, from, to } = state.selection.main;
  const at = state.doc.lineAt(head);
  return { line: at.number, column: head - at.from + 1, selected: to - from };
}

/** Positions are counted with ends of lines of one character, whatever they are in the file. */
function inPlace(state: EditorState, text: string) {
  const plain = state.lineBreak === "\r\n" ? text.replaceAll("\r\n", "\n") : text;
  const { from, to, insert } = difference(state.doc.toString(), plain);
  return { from, to, insert: state.toText(insert.replaceAll("\n", state.lineBreak)) };
}
