// What agents write, as Markdown that can show things and do nothing: no markup of theirs, no images from elsewhere.

import DOMPurify from "../vendor/dompurify.js";
import { Marked } from "../vendor/marked.js";
import { html, signal, useMemo, useRef } from "../vendor/preact.js";

const ADDRESS = /^(?:https?:\/\/|mailto:)/i;
const PICTURE = /^data:image\/(?:png|jpeg|gif|webp);base64,[a-z0-9+/=\s]+$/i;
// Tags without attributes that people know from Markdown; others are text.
const MARKUP = /^<\/?(?:br|sub|sup|kbd|b|i|u|s|em|strong)\s*\/?>$/i;
// What KaTeX makes of formulas; browsers draw it by themselves.
const MATH_TAGS = "math menclose mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover";
const MATH_ATTRIBUTES = "accent accentunder alttext columnalign columnlines columnspacing depth display displaystyle fence height linethickness lspace mathbackground mathcolor mathvariant maxsize minsize movablelimits notation rowlines rowspacing rspace scriptlevel separator stretchy symmetric voffset width xmlns";
const TAGS = "a b blockquote br button code del div em h1 h2 h3 h4 h5 h6 hr i img kbd li ol p pre s span strong sub sup table tbody td th thead tr u ul";
const ALLOWED = {
  ALLOWED_TAGS: `${TAGS} ${MATH_TAGS}`.split(" "),
  ALLOWED_ATTR: ["href", "src", "alt", "title", "class", "start", "align", "tabindex", "role", "aria-label", "rel", "target", "type", "colspan", ...MATH_ATTRIBUTES.split(" ")],
  ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:|data:image\/(?:png|jpeg|gif|webp);base64,)/i,
  ADD_URI_SAFE_ATTR: ["start", "align", "tabindex", "aria-label", "rel", "target", "type", "colspan", ...MATH_ATTRIBUTES.split(" ")],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
};

/** A text as the content of an element. */
export const escaped = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

// Longer ones are shown as they were written: colours and formulas must not hold up who writes.
const MAX_CODE_CHARS = 20_000;
const MAX_TEX_CHARS = 2_000;
// Words of Koi that TypeScript does not have.
const KOI_WORDS = "affordance agent agents amnesia answer can examples expose guard mcp needs on phases playbook prompt resilience role run sealed send skill skills start state team transitions uses when every";

/** The modules that only some texts need, by name; they are loaded with the first one. */
const modules = signal({});
const LOADERS = {
  highlighter: () => import("../vendor/highlight.js").then(({ default: highlighter }) => (highlighter.registerLanguage("koi", koiLanguage), highlighter)),
  katex: () => import("../vendor/katex.js").then(({ default: katex }) => katex),
};
const asked = new Set();

function moduleNow(name) {
  if (!asked.has(name)) {
    asked.add(name);
    LOADERS[name]().then((loaded) => (modules.value = { ...modules.value, [name]: loaded }), () => undefined);
  }
  return modules.value[name];
}

function koiLanguage(highlighter) {
  const language = highlighter.getLanguage("typescript").rawDefinition(highlighter);
  language.name = "Koi";
  language.aliases = [];
  language.keywords = { ...language.keywords, keyword: [...language.keywords.keyword, ...KOI_WORDS.split(" ")] };
  language.contains = [{ scope: "string", begin: '"""', end: '"""' }, ...language.contains];
  return language;
}

/** Code with colours, as HTML; while it is being written, and in a language that nobody knows, without them. */
function colouredCode(text, name, raw) {
  const isWhole = /\n\s*(`{3,}|~{3,})\s*$/.test(raw);
  const highlighter = name && isWhole && text.length <= MAX_CODE_CHARS ? moduleNow("highlighter") : undefined;
  return highlighter?.getLanguage(name) ? highlighter.highlight(text, { language: name, ignoreIllegals: true }).value : escaped(text);
}

// `$x$` and `\(x\)` in a line, `$$x$$` and `\[x\]` in one or more of their own; `$5 and $6`, and `$HOME/$USER`, are none.
const FORMULA = /^(?:\$\$([^$\n]+?)\$\$|\$(?![\s$])((?:\\[^\n]|[^\\$\n])*?[^\s\\$])\$(?![0-9A-Za-z])|\\\(([^\n]+?)\\\))/;
const FORMULA_BLOCK = /^ {0,3}(?:\$\$([^$]+?)\$\$|\\\[([\s\S]+?)\\\])[ \t]*(?:\n|$)/;

/** A formula in TeX as HTML; what is no TeX is shown as it was written. */
function formulaOf({ raw, tex }, isBlock) {
  const katex = tex.length <= MAX_TEX_CHARS ? moduleNow("katex") : undefined;
  let drawn = `<code>${escaped(katex ? raw.trim() : tex)}</code>`;
  try {
    // The source stands beside the formula there, for who copies it; here it is the name of the formula.
    const made = katex?.renderToString(tex, { output: "mathml", displayMode: isBlock, maxExpand: 200, maxSize: 20, strict: "ignore" });
    drawn = made?.replace(/<annotation[\s\S]*<\/annotation>|<\/?semantics>/g, "").replace("<math", () => `<math alttext="${escaped(tex)}"`) ?? drawn;
  } catch {}
  return isBlock ? `<div class="scroll formula" tabindex="0" role="region" aria-label="formula">${drawn}</div>` : drawn;
}

const FORMULAS = [
  {
    name: "formula",
    level: "inline",
    start: (text) => [text.search(/\$|\\\(/)].find((at) => at >= 0),
    tokenizer(text) {
      const found = FORMULA.exec(text);
      if (found) return { type: "formula", raw: found[0], tex: (found[1] ?? found[2] ?? found[3]).trim() };
    },
    renderer: (token) => formulaOf(token, false),
  },
  {
    name: "formulaBlock",
    level: "block",
    start: (text) => [text.search(/\n {0,3}(?:\$\$|\\\[)/)].find((at) => at >= 0),
    tokenizer(text) {
      const found = FORMULA_BLOCK.exec(text);
      if (found) return { type: "formulaBlock", raw: found[0], tex: (found[1] ?? found[2]).trim() };
    },
    renderer: (token) => formulaOf(token, true),
  },
];

const marked = new Marked({
  gfm: true,
  breaks: true,
  extensions: FORMULAS,
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
    code({ text, lang, raw }) {
      const name = String(lang || "").split(/\s/)[0].slice(0, 30);
      const kind = name === "diff" ? diffLines(text) : `<code>${colouredCode(text, name.toLowerCase(), raw)}</code>`;
      const label = name && `<span class="language">${escaped(name)}</span>`;
      return `<div class="code">${label}<button type="button" class="copy">Copy</button><pre tabindex="0" role="region" aria-label="${escaped(name) || "code"}">${kind}</pre></div>`;
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
  for (const extra of made.content.querySelectorAll("button, .language")) extra.remove();
  for (const formula of made.content.querySelectorAll("math")) formula.replaceWith(formula.getAttribute("alttext") ?? formula.textContent);
  for (const cell of made.content.querySelectorAll("td, th")) cell.append(", ");
  for (const block of made.content.querySelectorAll("p, li, tr, h1, h2, h3, h4, br")) block.after(" ");
  return made.content.textContent.replace(/, (?=\s*(?:$|\n))/g, " ").replace(/\s+/g, " ").trim();
}

/** A text of an agent; while it grows only the parts are made anew that change, and all when a module was loaded. */
export function Markdown({ text }) {
  const known = useRef(new Map());
  const loaded = useRef(modules.value);
  const parts = useMemo(() => {
    const made = new Map();
    if (loaded.current !== modules.value) known.current.clear();
    loaded.current = modules.value;
    const cache = {
      get: (raw) => made.get(raw) ?? known.current.get(raw),
      set: (raw, part) => made.set(raw, part),
    };
    const found = partsOf(text, cache);
    known.current = made;
    return found;
  }, [text, modules.value]);
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
