// The runs of the folder, newest first: what they are, how far they are, and what they took.

import { html, useEffect, useState } from "../vendor/preact.js";
import { isLive } from "./run_store.js";
import { duration, fileName, money, moment, plain } from "./texts.js";
import { Copy, Empty, Problem, State } from "./ui.js";

const EVERY_MS = 2000;
const STATES = ["working", "waiting", "paused", "idle", "asleep", "ok", "failed", "cancelled", "interrupted"];
const COMMANDS = ["koi init", "koi run hello.koi", "koi serve http hello.koi"];

export function RunsScreen({ data }) {
  const [held, setHeld] = useState({ runs: null, next: null, error: null });
  const [filter, setFilter] = useState({ words: "", program: "", state: "" });
  const [marked, setMarked] = useState([]);
  const load = async (before) => {
    try {
      const page = await data.runs({ program: filter.program, state: filter.state, limit: 100, before });
      setHeld((old) => ({ runs: before ? [...(old.runs || []), ...page.runs] : merge(page.runs, old.runs), next: before || !old.next ? page.next : old.next, error: null }));
    } catch (error) {
      setHeld((old) => ({ ...old, error }));
    }
  };
  useEffect(() => {
    setHeld({ runs: null, next: null, error: null });
    load();
    const timer = setInterval(() => document.visibilityState === "visible" && load(), EVERY_MS);
    return () => clearInterval(timer);
  }, [filter.program, filter.state]);
  const { runs, next, error } = held;
  if (error && !runs) return html`<main><${Problem} error=${error} /></main>`;
  if (!runs) return html`<main><${Empty}>Reading the runs…<//></main>`;
  const words = filter.words.toLowerCase();
  const shown = ordered(runs).filter((run) => !words || `${run.id} ${run.title} ${run.program} ${run.owner}`.toLowerCase().includes(words));
  const programs = [...new Set(runs.map((run) => run.program))];
  const most = Math.max(...shown.map((run) => run.usd || 0), 0);
  const mark = (id) => setMarked((before) => (before.includes(id) ? before.filter((each) => each !== id) : [...before, id].slice(-2)));
  const change = (name) => (event) => setFilter({ ...filter, [name]: event.target.value });
  const hasOwners = runs.some((run) => run.owner && run.owner !== runs[0].owner);
  return html`<main class="runs">
    <div class="row"><h1>Runs</h1>
      <input type="search" placeholder="find runs" aria-label="find runs" value=${filter.words} onInput=${change("words")} />
      <select aria-label="program" value=${filter.program} onChange=${change("program")}><option value="">all programs</option>${programs.map((name) => html`<option>${name}</option>`)}</select>
      <select aria-label="state" value=${filter.state} onChange=${change("state")}><option value="">all states</option>${STATES.map((name) => html`<option>${name}</option>`)}</select>
      <button disabled=${marked.length !== 2} onClick=${() => { location.hash = `#/compare/${marked[0]}/${marked[1]}`; }}>Compare ${marked.length} of 2</button></div>
    ${error && html`<${Problem} error=${error} />`}
    ${runs.length === 0 ? html`<div class="empty"><p>No run was recorded here yet. Begin with:</p>${COMMANDS.map((each) => html`<p key=${each}><code>${each}</code> <${Copy} text=${each} /></p>`)}</div>` : html`
    <table class="grid runs-table"><thead><tr><th><span class="hidden">compare</span></th><th>started</th><th>program</th><th>what</th>${hasOwners && html`<th>by</th>`}<th>state</th><th class="number">time</th><th class="number">requests</th><th class="number">tokens</th><th class="number">cost</th></tr></thead>
      <tbody>${shown.map((run) => html`<tr key=${run.id} data-run=${run.id} class=${isLive(run.state) ? "live" : ""}>
        <td><input type="checkbox" aria-label=${`compare ${run.id}`} checked=${marked.includes(run.id)} onChange=${() => mark(run.id)} /></td>
        <td>${moment(run.started)}</td><td>${fileName(run.program)}</td>
        <td class="what" style=${{ paddingLeft: `${8 + 18 * run.depth}px` }}>${run.depth > 0 && html`<span class="muted">↳ </span>`}<a href=${`#/run/${run.id}`}>${run.title || run.id}</a></td>
        ${hasOwners && html`<td>${run.owner}</td>`}<td><${State} state=${run.state} /></td>
        <td class="number">${duration((run.updated ?? run.started) - run.started)}</td><td class="number">${plain(run.requests)}</td><td class="number">${plain(run.tokens)}</td>
        <td class="number cost"><span class="cost-bar" style=${{ width: `${most && run.usd ? Math.max(2, (run.usd / most) * 60) : 0}px` }}></span>${run.usd === null ? "?" : money(run.usd)}</td></tr>`)}</tbody></table>`}
    ${next && html`<div class="row"><button onClick=${() => load(next)}>More runs</button></div>`}
  </main>`;
}

/** What is new of the first page before what was known. */
function merge(page, known) {
  if (!known) return page;
  const fresh = new Map(page.map((run) => [run.id, run]));
  const kept = known.filter((run) => !fresh.has(run.id) && page.length && run.started <= page[page.length - 1].started);
  return [...page, ...kept];
}

/** Runs that go on first, then the newest; branches stand under the run that they go on from. */
export function ordered(runs) {
  const known = new Map(runs.map((run) => [run.id, run]));
  const parentOf = (run) => known.get(Array.isArray(run.parent) ? run.parent[0] : run.parent?.run ?? run.parent);
  const under = new Map();
  for (const run of runs) {
    const parent = parentOf(run);
    if (parent) under.set(parent.id, [...(under.get(parent.id) || []), run]);
  }
  const rank = (run) => (isLive(run.state) && !["idle", "asleep"].includes(run.state) ? 0 : 1);
  const roots = runs.filter((run) => !parentOf(run)).sort((one, two) => rank(one) - rank(two) || two.started - one.started);
  const found = [];
  const add = (run, depth) => {
    found.push({ ...run, depth });
    for (const each of (under.get(run.id) || []).sort((one, two) => one.started - two.started)) add(each, depth + 1);
  };
  for (const run of roots) add(run, 0);
  return found;
}
