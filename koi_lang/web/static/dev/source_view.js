// The source of a program, with what its handlers have taken in the margin, and the line that something comes from.

import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { duration, money, plain } from "./texts.js";
import { Empty } from "./ui.js";

/** Where a step comes from: `{file, line, end, isExact}`; null where its handler is not in the source. */
export function placeOf(node, state, source) {
  if (!source || !node) return null;
  const labels = labelsOf(node);
  const own = labels.findIndex((label) => source.handlers[label]);
  if (own < 0) return null;
  const handler = source.handlers[labels[own]];
  const place = { file: handler.file, line: handler.line, end: handler.end, first: handler.line, isExact: own === 0 && node.kind === "handler" };
  // The call of this handler in the code of the one around it says more about a call than its own head.
  const inner = own > 0 ? labels[own - 1] : "";
  const lines = handler.playbook ? [] : inner ? linesOf(inner, node, handler, source) : [];
  if (lines.length) return { ...place, line: lines[0], isExact: lines.length === 1 };
  return handler.playbook && own > 0 ? { ...place, line: handler.playbook, isExact: false } : place;
}

function labelsOf(node) {
  return [...node.path].reverse().map((label) => label.replace(/#\d+$/, ""));
}

/** The handler that a step belongs to, as `Agent.event`; nothing where it is not in the source. */
export function handlerOf(node, source) {
  return labelsOf(node).find((label) => source.handlers[label]) || "";
}

const WRITTEN = { printed: ["console.log", "console.info", "print"], sleep: ["sleep", "setTimeout"], clock: ["Date", "now"] };

/** The lines of the code of a handler that may have done something of a name. */
function linesOf(name, node, handler, source) {
  if (handler.calls[name]) return handler.calls[name];
  const lines = source.files[handler.file].text.split("\n");
  const found = [];
  for (const word of WRITTEN[name] || [name]) {
    for (let line = handler.line; line <= handler.end; line += 1) {
      const text = lines[line - 1] || "";
      if (text.includes(word) && !found.includes(line)) found.push(line);
    }
  }
  return found;
}

/** The text of a file as lines of coloured pieces. */
export function colouredLines(file) {
  const lines = [[]];
  const add = (text, colour) => {
    for (const [at, part] of text.split("\n").entries()) {
      if (at) lines.push([]);
      if (part) lines[lines.length - 1].push([part, colour]);
    }
  };
  let end = 0;
  for (const [start, length, colour] of file.tokens) {
    if (start > end) add(file.text.slice(end, start), "");
    add(file.text.slice(start, start + length), colour);
    end = start + length;
  }
  add(file.text.slice(end), "");
  return lines;
}

export function SourceView({ run, source, error, place, filter, setFilter }) {
  const [chosen, setChosen] = useState(0);
  const box = useRef(null);
  const version = run ? run.version.value : 0;
  const index = place ? place.file : chosen;
  useEffect(() => { if (place) setChosen(place.file); }, [place?.file]);
  useEffect(() => {
    if (place && box.current) {
      const line = box.current.querySelector(`[data-line="${place.line}"]`);
      if (line) line.scrollIntoView({ block: "nearest" });
    }
  }, [place?.file, place?.line]);
  const file = source?.files[Math.min(chosen, source.files.length - 1)];
  const lines = useMemo(() => (file ? colouredLines(file) : []), [file]);
  const notes = useMemo(() => (source ? notesOf(run, source, chosen) : new Map()), [source, chosen, version]);
  if (error) return html`<${Empty}>The source cannot be shown: ${error.message}<//>`;
  if (!file) return html`<${Empty}>${source ? "The program has no files." : "…"}<//>`;
  const isHere = index === chosen;
  return html`<div class="source">
    <div class="source-head">
      ${source.files.length > 1
        ? html`<select aria-label="file" value=${chosen} onChange=${(event) => setChosen(Number(event.target.value))}>
            ${source.files.map((each, at) => html`<option value=${at}>${each.name}</option>`)}</select>`
        : html`<b>${file.name}</b>`}
      ${source.isChanged && html`<span class="warning" title="The lines may have moved.">changed since this run</span>`}
    </div>
    <div class=${run ? "code" : "code bare"} ref=${box}>
      ${lines.map((pieces, at) => {
        const line = at + 1;
        const note = notes.get(line);
        const isPlace = isHere && place && line === place.line;
        const isAround = isHere && place && line >= place.first && line <= place.end;
        const classes = `line${isAround ? " around" : ""}${isPlace ? " here" : ""}${note?.open ? " at-work" : ""}`;
        return html`<div key=${line} class=${classes} data-line=${line}>
          <span class="gutter">${note ? html`<button title=${note.title} onClick=${() => setFilter && setFilter({ ...filter, handler: note.name })}>${note.text}</button>` : ""}</span>
          <span class="number">${line}</span><code>${pieces.map(([text, colour]) => (colour ? html`<span class=${`c-${colour}`}>${text}</span>` : text))}</code></div>`;
      })}
    </div>
  </div>`;
}

/** What stands in the margin of the first lines of handlers. */
function notesOf(run, source, file) {
  const notes = new Map();
  for (const [name, handler] of Object.entries(source.handlers)) {
    const took = run?.state?.handlers.get(name);
    if (handler.file !== file || !took) continue;
    const cost = took.usd ? ` · ${money(took.usd, took.unpriced)}` : "";
    const title = `${name}: ${took.calls} calls, ${duration(took.seconds)}, ${plain(took.tokens)} tokens${took.failed ? `, ${took.failed} failed` : ""}; click to see only its steps`;
    notes.set(handler.line, { name, open: took.open > 0, text: `${took.calls}× ${duration(took.seconds)}${cost}`, title });
  }
  return notes;
}
