// Markdown as React elements. Nothing in it becomes HTML of its own, so nothing in it can run.

import { marked, type Token, type Tokens } from "marked";
import { Fragment, memo, useMemo, type ReactNode } from "react";
import { CodeBlock } from "./code";
import css from "./markdown.module.css";
import { IconButton } from "./basics";
import { copyText } from "./clipboard";
import { say, sayError } from "./overlay";

/** A text of which more may come: what is whole already is not made again. */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const blocks = useMemo(() => marked.lexer(text), [text]);
  return (
    <div className={css.prose}>
      {blocks.map((token, index) => (
        <Block key={index} raw={token.raw} token={token} />
      ))}
    </div>
  );
});

const Block = memo(
  function Block({ token }: { raw: string; token: Token }) {
    return <>{block(token)}</>;
  },
  (before, after) => before.raw === after.raw,
);

function block(token: Token): ReactNode {
  switch (token.type) {
    case "heading": {
      // A page has its own headings above these.
      const level = Math.min(6, (token as Tokens.Heading).depth + 2);
      const Heading = `h${level}` as "h3";
      return <Heading>{inline((token as Tokens.Heading).tokens)}</Heading>;
    }
    case "paragraph":
      return <p>{inline((token as Tokens.Paragraph).tokens)}</p>;
    case "text":
      return <>{inline((token as Tokens.Text).tokens ?? [token])}</>;
    case "code": {
      const { text, lang = "" } = token as Tokens.Code;
      return <CodeBlock text={text} name={lang} tools={<CodeTools text={text} name={lang} />} />;
    }
    case "blockquote":
      return <blockquote>{(token as Tokens.Blockquote).tokens.map((inner, index) => <Fragment key={index}>{block(inner)}</Fragment>)}</blockquote>;
    case "list": {
      const { ordered, items, start } = token as Tokens.List;
      const entries = items.map((item, index) => <li key={index}>{listItem(item)}</li>);
      return ordered ? <ol start={Number(start) || 1}>{entries}</ol> : <ul>{entries}</ul>;
    }
    case "table":
      return <Table table={token as Tokens.Table} />;
    case "hr":
      return <hr />;
    case "space":
    case "def":
      return null;
    default:
      return <p>{token.raw}</p>;
  }
}

function listItem(item: Tokens.ListItem): ReactNode {
  const content = item.tokens.map((inner, index) => <Fragment key={index}>{block(inner)}</Fragment>);
  if (!item.task) return content;
  return (
    <>
      <input type="checkbox" checked={item.checked ?? false} readOnly aria-label={item.checked ? "Done" : "Not done"} /> {content}
    </>
  );
}

function Table({ table }: { table: Tokens.Table }) {
  return (
    <div className={css.table} tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead>
          <tr>{table.header.map((cell, index) => <th key={index}>{inline(cell.tokens)}</th>)}</tr>
        </thead>
        <tbody>
          {table.rows.map((row, index) => (
            <tr key={index}>{row.map((cell, column) => <td key={column}>{inline(cell.tokens)}</td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function CodeTools({ text, name }: { text: string; name: string }) {
  return (
    <>
      <span>{name || "text"}</span>
      <IconButton small label="Copy" icon="copy" onClick={() => void copyText(text).then(() => say("Copied"), sayError)} />
    </>
  );
}

function inline(tokens: Token[]): ReactNode {
  return tokens.map((token, index) => <Fragment key={index}>{span(token)}</Fragment>);
}

function span(token: Token): ReactNode {
  switch (token.type) {
    case "strong":
      return <strong>{inline((token as Tokens.Strong).tokens)}</strong>;
    case "em":
      return <em>{inline((token as Tokens.Em).tokens)}</em>;
    case "del":
      return <del>{inline((token as Tokens.Del).tokens)}</del>;
    case "codespan":
      return <code className={css.span}>{(token as Tokens.Codespan).text}</code>;
    case "br":
      return <br />;
    case "link": {
      const { href, tokens } = token as Tokens.Link;
      return safe(href) ? <a href={href} target="_blank" rel="noreferrer noopener">{inline(tokens)}</a> : inline(tokens);
    }
    // Not loaded: whoever wrote the text would learn when it is read, and by whom.
    case "image":
      return <span className="soft">[{(token as Tokens.Image).text || "image"}]</span>;
    case "text":
    case "escape":
      return "tokens" in token && token.tokens ? inline(token.tokens) : (token as Tokens.Text).text;
    default:
      return token.raw;
  }
}

const safe = (href: string) => /^(https?:|mailto:|#)/i.test(href);
