// Colours for code, by the languages that the editor knows. Loaded on demand.

import { LanguageDescription } from "@codemirror/language";
import { languages } from "@codemirror/language-data";
import { classHighlighter, highlightCode } from "@lezer/highlight";
import "./highlight.css";

function language(name: string): LanguageDescription | null {
  if (!name) return null;
  return LanguageDescription.matchFilename(languages, name) ?? LanguageDescription.matchLanguageName(languages, name, true);
}

/** The text in pieces with a class each; their texts joined are the text. */
export async function highlight(text: string, name: string): Promise<{ text: string; className: string }[]> {
  const support = await language(name)?.load();
  if (!support) return [{ text, className: "" }];
  const parts: { text: string; className: string }[] = [];
  highlightCode(
    text,
    support.language.parser.parse(text),
    classHighlighter,
    (piece, className) => parts.push({ text: piece, className }),
    () => parts.push({ text: "\n", className: "" }),
  );
  return parts;
}
