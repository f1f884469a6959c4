// The list of steps: a line for each thing that happened, as the terminal shows them.

import { html, useMemo, useState } from "../vendor/preact.js";
import { kindOf } from "./lanes.js";
import { duration, money, plain } from "./texts.js";
import { VirtualList } from "./ui.js";

const HEIGHT = 24;
export const GROUPS = [
  ["handler", "handlers"], ["model", "models"], ["action", "actions"], ["wait", "people"], ["point", "the rest"],
];

/** Whether a step is among those that are wanted. */
export function isWanted(node, filter) {
  const group = node.kind === "effect" ? "action" : node.kind;
  if (filter.hidden.has(group) || (node.minor && !filter.minor)) return false;
  if (filter.failed && node.status !== "failed") return false;
  if (filter.agent && node.agent !== filter.agent) return false;
  if (filter.handler && !isIn(node, filter)) return false;
  const words = filter.words.trim().toLowerCase();
  return !words || textOf(node).includes(words);
}

// What is looked through of a step, until it ends.
const texts = new WeakMap();

function textOf(node) {
  const known = texts.get(node);
  if (known && known.endN === node.endN) return known.text;
  const text = `${node.title} ${node.detail} ${node.came || ""} ${node.error} ${node.agent}`.toLowerCase();
  texts.set(node, { endN: node.endN, text });
  return text;
}

function isIn(node, filter) {
  return node.path.some((label) => label.replace(/#\d+$/, "") === filter.handler);
}

export const NO_FILTER = { hidden: new Set(), minor: false, failed: false, agent: "", handler: "", words: "" };

export function Steps({ run, chosen, onChoose, filter, setFilter, follow }) {
  const state = run.state;
  const version = run.version.value;
  const nodes = useMemo(() => state.nodes.filter((node) => isWanted(node, filter)), [version, filter]);
  const [reveal, setReveal] = useState(null);
  const at = useMemo(() => nodes.findIndex((node) => node.index === chosen), [nodes, chosen]);
  const onKey = (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12 }[event.key];
    if (!by) return;
    event.preventDefault();
    const next = Math.min(nodes.length - 1, Math.max(0, (at < 0 ? -1 : at) + by));
    if (nodes[next]) {
      onChoose(nodes[next].index);
      setReveal(next);
    }
  };
  const toggle = (group) => {
    const hidden = new Set(filter.hidden);
    if (!hidden.delete(group)) hidden.add(group);
    setFilter({ ...filter, hidden });
  };
  return html`<section class="steps" aria-label="steps">
    <div class="filters">
      <input type="search" placeholder="find in steps" aria-label="find in steps" value=${filter.words}
        onInput=${(event) => setFilter({ ...filter, words: event.target.value })} />
      <select aria-label="agent" value=${filter.agent} onChange=${(event) => setFilter({ ...filter, agent: event.target.value })}>
        <option value="">all agents</option>
        ${[...state.agents.keys()].filter(Boolean).map((name) => html`<option value=${name}>${name}</option>`)}
      </select>
      ${GROUPS.map(([group, text]) => html`<button class="chip" aria-pressed=${!filter.hidden.has(group)} onClick=${() => toggle(group)}>${text}</button>`)}
      <button class="chip" aria-pressed=${filter.failed} onClick=${() => setFilter({ ...filter, failed: !filter.failed })}>only failures</button>
      <button class="chip" aria-pressed=${filter.minor} onClick=${() => setFilter({ ...filter, minor: !filter.minor })}>all details</button>
      ${filter.handler && html`<button class="chip" onClick=${() => setFilter({ ...filter, handler: "" })}>in ${filter.handler} ✕</button>`}
      <span class="muted">${plain(nodes.length)} of ${plain(state.nodes.length)}</span>
    </div>
    <${VirtualList} count=${nodes.length} height=${HEIGHT} label="steps" onKey=${onKey} stick=${follow}
      reveal=${reveal ?? at} row=${(index) => html`<${Step} key=${nodes[index].index} node=${nodes[index]} isChosen=${nodes[index].index === chosen} onChoose=${onChoose} ends=${nodes[index].endN} status=${nodes[index].status} />`} />
  </section>`;
}

function Step({ node, isChosen, onChoose }) {
  const took = node.kind === "point" ? "" : node.t1 === null ? "…" : duration(node.t1 - node.t0);
  const came = node.error || (node.came ? `→ ${node.came}` : "");
  return html`<div class=${`step${isChosen ? " chosen" : ""}${node.status === "failed" ? " failed" : ""}`} role="option"
    aria-selected=${isChosen} data-n=${node.n} onClick=${() => onChoose(node.index)}>
    <span class="step-time">${node.t0.toFixed(2)}</span>
    <span class="step-agent">${node.agent}</span>
    <span class="step-text" style=${{ paddingLeft: `${Math.min(node.depth, 12) * 12}px` }}>
      <i class=${`dot dot-${kindOf(node)}${node.status === "open" ? " open" : ""}`}></i>
      <b>${node.title}</b> ${node.detail} <span class="came">${came}</span></span>
    <span class="step-cost">${node.tokens ? `${plain(node.tokens)} tok${node.usd ? ` ${money(node.usd, node.unpriced)}` : ""}` : ""}</span>
    <span class="step-took">${took}</span>
  </div>`;
}
