// Small parts that several screens are made of.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";

/** Rows of one height, of which only those that can be seen are there. `reveal` is the index of one to show. */
export function VirtualList({ count, height, row, reveal, label, stick, onKey }) {
  const box = useRef(null);
  const [view, setView] = useState({ top: 0, high: 400 });
  const look = () => {
    if (!box.current) return;
    const { scrollTop, clientHeight } = box.current;
    setView((before) => (before.top === scrollTop && before.high === clientHeight ? before : { top: scrollTop, high: clientHeight }));
  };
  useEffect(() => {
    const watch = new ResizeObserver(look);
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (reveal === null || reveal === undefined || reveal < 0) return;
    const { scrollTop, clientHeight } = box.current;
    const top = reveal * height;
    if (top < scrollTop || top + height > scrollTop + clientHeight) {
      box.current.scrollTop = Math.max(0, top - clientHeight / 2);
      look();
    }
  }, [reveal]);
  useLayoutEffect(() => {
    if (stick) box.current.scrollTop = count * height;
  }, [count, stick]);
  const first = Math.max(0, Math.floor(view.top / height) - 10);
  const last = Math.min(count, Math.ceil((view.top + view.high) / height) + 10);
  const rows = [];
  for (let at = first; at < last; at += 1) rows.push(row(at));
  return html`<div class="virtual" ref=${box} onScroll=${look} tabindex="0" role="listbox" aria-label=${label} onKeyDown=${onKey}>
    <div style=${{ height: `${count * height}px` }}><div style=${{ transform: `translateY(${first * height}px)` }}>${rows}</div></div>
  </div>`;
}

export function Tabs({ names, chosen, onChoose, label }) {
  return html`<div class="tabs" role="tablist" aria-label=${label}>
    ${names.map(([key, text]) => html`<button role="tab" key=${key} aria-selected=${key === chosen} onClick=${() => onChoose(key)}>${text}</button>`)}
  </div>`;
}

/** A text in a box of its own, with a button that copies it. */
export function Text({ text, label, tall }) {
  return html`<div class="text-box">
    ${label && html`<div class="text-label">${label}<${Copy} text=${text} /></div>`}
    <pre class=${tall ? "tall" : ""}>${text}</pre>
  </div>`;
}

export function Copy({ text, title }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => setDone(false), 1200);
    } catch {
      setDone(false);
    }
  };
  return html`<button class="quiet" title=${title || "copy"} onClick=${copy}>${isDone ? "copied" : "copy"}</button>`;
}

/** What went wrong, and what to do. */
export function Problem({ error }) {
  const stop = error.help && !/[.!?:]$/.test(error.message) ? "." : "";
  return html`<div class="problem" role="alert"><b>${error.message}${stop}</b>${error.help && html`<span> ${error.help}</span>`}</div>`;
}

export function State({ state }) {
  return html`<span class=${`state state-${state}`}>${state}</span>`;
}

export function Empty({ children }) {
  return html`<p class="empty">${children}</p>`;
}

/** What a function promises, with what went wrong: `[value, error, again]`; `keys` say when to ask again. */
export function useAnswer(ask, keys) {
  const [held, setHeld] = useState({ value: undefined, error: null, turn: 0 });
  useEffect(() => {
    let isCurrent = true;
    setHeld((before) => ({ ...before, error: null }));
    Promise.resolve().then(ask).then(
      (value) => isCurrent && setHeld((before) => ({ ...before, value })),
      (error) => isCurrent && setHeld((before) => ({ ...before, error })),
    );
    return () => { isCurrent = false; };
  }, [...keys, held.turn]);
  return [held.value, held.error, () => setHeld((before) => ({ ...before, turn: before.turn + 1 }))];
}

/** The pieces of a difference in a box. */
export function Difference({ pieces }) {
  return html`<pre class="difference">${pieces.map(({ kind, text }) => kind === "same"
    ? html`<span>${text}</span>` : kind === "out" ? html`<del>${text}</del>` : html`<ins>${text}</ins>`)}</pre>`;
}

/** A difference in the unified form, its lines coloured. */
export function DiffText({ text }) {
  const kinds = { "+": "ins", "-": "del", "@": "i" };
  return html`<pre class="difference lines">${text.split("\n").filter((line) => !/^(\+\+\+|---)/.test(line)).map((line) => html`<${kinds[line[0]] || "span"}>${line}</>`)}</pre>`;
}

/** Numbers beside bars: what of something fell to each. */
export function Bars({ rows, longest }) {
  const most = longest ?? Math.max(...rows.map((row) => row.size), 0);
  return html`<table class="bars"><tbody>${rows.map((row) => html`<tr key=${row.name}>
    <th scope="row">${row.name}</th>
    <td class="bar"><span style=${{ width: `${most ? Math.max(1, (row.size / most) * 100) : 0}%` }}></span></td>
    ${row.cells.map((cell) => html`<td class="number">${cell}</td>`)}
  </tr>`)}</tbody></table>`;
}
