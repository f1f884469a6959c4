// What agents write, as Markdown that can show things and do nothing: no markup of theirs, no images from elsewhere.

import DOMPurify from "../vendor/dompurify.js";
import { Marked } from "../vendor/marked.js";
import { html, useMemo, useRef } from "../vendor/preact.js";

const ADDRESS = /^(?:https?:\/\/|mailto:)/i;
const PICTURE = /^data:image\/(?:png|jpeg|gif|webp);base64,[a-z0-9+/=\s]+$/i;
// Tags without attributes that people know from Markdown; others are text.
const MARKUP = /^<\/?(?:br|sub|sup|kbd|b|i|u|s|em|strong)\s*\/?>$/i;
const TAGS = "a b blockquote br button code del div em h1 h2 h3 h4 h5 h6 hr i img kbd li ol p pre s span strong sub sup table tbody td th thead tr u ul";
const ALLOWED = {
  ALLOWED_TAGS: TAGS.split(" "),
  ALLOWED_ATTR: ["href", "src", "alt", "title", "class", "start", "align", "tabindex", "role", "aria-label", "rel", "target", "type", "colspan"],
  ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:|data:image\/(?:png|jpeg|gif|webp);base64,)/i,
  ADD_URI_SAFE_ATTR: ["start", "align", "tabindex", "aria-label", "rel", "target", "type", "colspan"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
};

/** A text as the content of an element. */
export const escaped = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    html: ({ text }) => (MARKUP.test(text.trim()) ? text : escaped(text)),
    link({ href, tokens, title }) {
      const inside = this.parser.parseInline(tokens);
      if (!ADDRESS.test(href)) return inside;
      return `<a href="${escaped(href)}" rel="noopener noreferrer nofollow" target="_blank"${title ? ` title="${escaped(title)}"` : ""}>${inside}</a>`;
    },
    image({ href, text }) {
      if (PICTURE.test(href)) return `<img src="${escaped(href)}" alt="${escaped(text)}">`;
      return `<span class="absent">${escaped(text || "picture")} (not shown: it is elsewhere)</span>`;
    },
    code({ text, lang }) {
      const name = escaped(String(lang || "").split(/\s/)[0].slice(0, 30));
      const kind = name === "diff" ? diffLines(text) : `<code>${escaped(text)}</code>`;
      return `<div class="code"><button type="button" class="copy">Copy</button><pre tabindex="0" role="region" aria-label="${name || "code"}">${kind}</pre></div>`;
    },
    table(token) {
      const cells = (row, tag) => row.map((cell) => `<${tag}${cell.align ? ` align="${cell.align}"` : ""}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join("");
      const body = token.rows.map((row) => `<tr>${cells(row, "td")}</tr>`).join("");
      return `<div class="scroll" tabindex="0" role="region" aria-label="table"><table><thead><tr>${cells(token.header, "th")}</tr></thead><tbody>${body}</tbody></table></div>`;
    },
    checkbox: ({ checked }) => `<span role="img" aria-label="${checked ? "done" : "to do"}">${checked ? "☑" : "☐"}</span> `,
  },
});

// Code is written from the left everywhere; each part has the direction of its own text.
DOMPurify.addHook("afterSanitizeAttributes", (node) => /^(PRE|CODE)$/.test(node.tagName) && node.setAttribute("dir", "ltr"));

/** The class of a line of a diff. */
export const diffClass = (line) =>
  /^(\+\+\+|---|@@|diff |index )/.test(line) ? "place" : line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "same";

const diffLines = (text) => text.split("\n").map((line) => `<span class="${diffClass(line)}">${escaped(line) || " "}</span>`).join("");

/** HTML that is safe to show, of one part of a text. */
const safe = (token) => DOMPurify.sanitize(marked.parser([token]), ALLOWED);

/** A text in its parts, each as safe HTML; parts that were there before are taken from `known`. */
export function partsOf(text, known = new Map()) {
  const parts = [];
  for (const token of marked.lexer(text)) {
    if (token.type === "space" || token.type === "def") continue;
    const part = known.get(token.raw) ?? safe(token);
    known.set(token.raw, part);
    parts.push(part);
  }
  return parts;
}

/** The words of a text without its markup, as they are read aloud. */
export function plainText(text) {
  const made = document.createElement("template");
  made.innerHTML = partsOf(text).join(" ");
  for (const button of made.content.querySelectorAll("button")) button.remove();
  for (const cell of made.content.querySelectorAll("td, th")) cell.append(", ");
  for (const block of made.content.querySelectorAll("p, li, tr, h1, h2, h3, h4, br")) block.after(" ");
  return made.content.textContent.replace(/, (?=\s*(?:$|\n))/g, " ").replace(/\s+/g, " ").trim();
}

/** A text of an agent; while it grows only the parts are made anew that change. */
export function Markdown({ text }) {
  const known = useRef(new Map());
  const parts = useMemo(() => {
    const made = new Map();
    const cache = {
      get: (raw) => made.get(raw) ?? known.current.get(raw),
      set: (raw, part) => made.set(raw, part),
    };
    const found = partsOf(text, cache);
    known.current = made;
    return found;
  }, [text]);
  return html`<div class="markdown" onClick=${copyCode}>${parts.map((part, at) => html`<div key=${at} class="part" dir="auto" dangerouslySetInnerHTML=${{ __html: part }} />`)}</div>`;
}

function copyCode(event) {
  const button = event.target.closest("button.copy");
  const code = button?.parentElement.querySelector("pre");
  if (!code) return;
  const told = (word) => {
    button.textContent = word;
    setTimeout(() => (button.textContent = "Copy"), 1500);
  };
  navigator.clipboard?.writeText(code.textContent).then(() => told("Copied"), () => told("Not copied")) ?? told("Not copied");
}
