// What the editor can do, put together from its parts.

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, foldGutter, foldKeymap, indentOnInput, indentUnit, LanguageDescription, syntaxHighlighting } from "@codemirror/language";
import { languages } from "@codemirror/language-data";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension } from "@codemirror/state";
import {
  crosshairCursor,
  drawSelection,
  dropCursor,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  rectangularSelection,
} from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import "../../../ui/highlight.css";
import { nameOf } from "../paths";
import { endingOf, indentOf } from "./document";
import { theme } from "./theme";

export const languageOf = (path: string): LanguageDescription | null => LanguageDescription.matchFilename(languages, nameOf(path));

/** What is shown alike wherever a text is. */
export const looks: Extension = [theme, syntaxHighlighting(classHighlighter), lineNumbers(), highlightSpecialChars(), drawSelection()];

/** Everything to write with. */
export function setup(path: string, text: string): Extension {
  const indent = indentOf(text);
  return [
    looks,
    EditorState.lineSeparator.of(endingOf(text)),
    EditorState.allowMultipleSelections.of(true),
    EditorState.tabSize.of(4),
    indentUnit.of(indent),
    history(),
    foldGutter(),
    dropCursor(),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    autocompletion({ icons: false }),
    rectangularSelection(),
    crosshairCursor(),
    highlightActiveLine(),
    highlightActiveLineGutter(),
    highlightSelectionMatches(),
    search({ top: true }),
    keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, ...completionKeymap, indentWithTab]),
    EditorView.contentAttributes.of({ "aria-label": `Text of ${nameOf(path)}. Escape and then Tab leaves the editor.`, spellcheck: "false", autocapitalize: "off", tabindex: "0" }),
  ];
}
