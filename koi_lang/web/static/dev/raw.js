// The entries of a journal as they are, with filters.

import { html, useMemo, useState } from "../vendor/preact.js";
import { short } from "../store.js";
import { pretty } from "./texts.js";
import { Empty, Text, VirtualList } from "./ui.js";

const HIDDEN = new Set(["n", "ts", "kind", "path", "agent", "totals", "crc", "mac"]);

export function Raw({ run }) {
  const version = run.version.value;
  const [filter, setFilter] = useState({ words: "", kind: "", agent: "" });
  const [chosen, setChosen] = useState(null);
  const { state } = run;
  const all = useMemo(() => [...state.entries.values()].map((entry) => ({ entry, text: restOf(entry) })), [version]);
  const kinds = useMemo(() => [...new Set(all.map(({ entry }) => entry.kind))].sort(), [all]);
  const rows = useMemo(() => {
    const words = filter.words.toLowerCase();
    return all.filter(({ entry, text }) => (!filter.kind || entry.kind === filter.kind) && (!filter.agent || entry.agent === filter.agent)
      && (!words || `${entry.path.join("/")} ${text}`.toLowerCase().includes(words)));
  }, [all, filter]);
  const change = (name) => (event) => setFilter({ ...filter, [name]: event.target.value });
  const entry = state.entries.get(chosen);
  return html`<div class="raw">
    <div class="filters">
      <input type="search" placeholder="find in entries" aria-label="find in entries" value=${filter.words} onInput=${change("words")} />
      <select aria-label="kind" value=${filter.kind} onChange=${change("kind")}><option value="">all kinds</option>${kinds.map((kind) => html`<option>${kind}</option>`)}</select>
      <select aria-label="agent" value=${filter.agent} onChange=${change("agent")}><option value="">all agents</option>${[...state.agents.keys()].filter(Boolean).map((name) => html`<option>${name}</option>`)}</select>
      <span class="muted">${rows.length} of ${all.length}</span>
    </div>
    <div class="raw-panes">
      ${rows.length ? html`<${VirtualList} count=${rows.length} height=${22} label="entries" row=${(at) => html`<div key=${rows[at].entry.n} role="option"
        aria-selected=${rows[at].entry.n === chosen} class=${`raw-row${rows[at].entry.n === chosen ? " chosen" : ""}`} onClick=${() => setChosen(rows[at].entry.n)}>
        <span>${rows[at].entry.n}</span><b>${rows[at].entry.kind}</b><span class="path">${rows[at].entry.path.join(" / ")}</span><span>${rows[at].text}</span></div>`} />`
        : html`<${Empty}>No entry fits the filters.<//>`}
      ${entry && html`<aside><${Text} label=${`entry ${entry.n}`} text=${pretty(entry)} tall /></aside>`}
    </div>
  </div>`;
}

// Entries do not change, so each of them is written once.
const written = new WeakMap();

function restOf(entry) {
  if (!written.has(entry)) {
    const rest = Object.entries(entry).filter(([name]) => !HIDDEN.has(name));
    written.set(entry, rest.map(([name, value]) => `${name}=${short(value, 200)}`).join(" "));
  }
  return written.get(entry);
}
