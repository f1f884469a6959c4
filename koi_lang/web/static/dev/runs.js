// The runs of the folder, newest first: what they are, how far they are, and what they took.

import { html, useEffect, useState } from "../vendor/preact.js";
import { isLive } from "./run_store.js";
import { count, duration, fileName, money, moment, plain } from "./texts.js";
import { Copy, Empty, Problem, State } from "./ui.js";

const EVERY_MS = 2000;
const STATES = [["bad", "ended badly"], ...["working", "waiting", "paused", "idle", "asleep", "ok", "failed", "cancelled", "interrupted"].map((name) => [name, name])];
const COMMANDS = ["koi init", "koi run hello.koi", "koi serve http hello.koi"];
// What is left of the columns where there is no room.
const NARROW = new Set(["started", "state", "usd"]);
const AT_WORK = "at work";
const LATEST = "-started";
const NO_FILTER = { program: "", state: "", user: "", day: "", usd: "", seconds: "", sort: LATEST };
// Columns by which runs are sorted, with what they are called; numbers begin with the largest.
const COLUMNS = [["started", "started"], ["program", "program"], ["", "what"], ["owner", "by"], ["state", "state"], ["seconds", "time"], ["requests", "requests"], ["tokens", "tokens"], ["usd", "cost"]];
const NUMBERS = new Set(["started", "seconds", "requests", "tokens", "usd"]);

export function RunsScreen({ data }) {
  const [held, setHeld] = useState({ page: null, runs: null, next: null, error: null });
  const [words, setWords] = useState("");
  const [filter, setFilter] = useState(NO_FILTER);
  const [marked, setMarked] = useState([]);
  const load = async (before) => {
    try {
      const page = await data.runs({ ...Object.fromEntries(Object.entries(filter).filter(([, value]) => value)), limit: 100, before });
      setHeld((old) => ({ page, runs: before ? [...(old.runs || []), ...page.runs] : merge(page, old.runs, filter.sort), next: before || !old.next ? page.next : old.next, error: null }));
    } catch (error) {
      setHeld((old) => ({ ...old, error }));
    }
  };
  useEffect(() => {
    setHeld((old) => ({ ...old, runs: old.page && [], next: null, error: null }));
    load();
    const timer = setInterval(() => document.visibilityState === "visible" && load(), EVERY_MS);
    return () => clearInterval(timer);
  }, [filter]);
  const { page, runs, next, error } = held;
  if (error && !page) return html`<main><${Problem} error=${error} /></main>`;
  if (!page) return html`<main><${Empty}>Reading the runs…<//></main>`;
  const isLatest = filter.sort === LATEST;
  const found = words.toLowerCase();
  const shown = (isLatest ? ordered(runs) : runs.map((run) => ({ ...run, depth: 0 }))).filter((run) => !found || `${run.id} ${run.title} ${run.program} ${run.owner}`.toLowerCase().includes(found));
  const most = Math.max(...shown.map((run) => run.usd || 0), 0);
  const mark = (id) => setMarked((before) => (before.includes(id) ? before.filter((each) => each !== id) : [...before, id].slice(-2)));
  const set = (values) => setFilter({ ...filter, ...values });
  const change = (name) => (event) => set({ [name]: event.target.value });
  const columns = COLUMNS.filter(([name]) => name !== "owner" || page.users.length > 1);
  const isDown = filter.sort[0] === "-";
  const sorted = filter.sort.slice(isDown ? 1 : 0);
  const sortBy = (name) => set({ sort: (sorted === name ? !isDown : NUMBERS.has(name)) ? `-${name}` : name });
  const isFiltered = Object.entries(filter).some(([name, value]) => value && name !== "sort");
  const isBadToday = filter.state === "bad" && filter.day === page.today;
  const select = (name, label, all, choices) => html`<select aria-label=${label} value=${filter[name]} onChange=${change(name)}><option value="">${all}</option>${choices.map(([value, text]) => html`<option value=${value}>${text}</option>`)}</select>`;
  return html`<main class="runs">
    <div class="row"><h1>Runs</h1>
      <input type="search" placeholder="find runs" aria-label="find runs" value=${words} onInput=${(event) => setWords(event.target.value)} />
      <button class="chip" aria-pressed=${isBadToday} onClick=${() => set(isBadToday ? { state: "", day: "" } : { state: "bad", day: page.today })}>ended badly today</button>
      ${select("program", "program", "all programs", page.programs.map((name) => [name, name]))}
      ${select("state", "state", "all states", STATES)}
      ${page.users.length > 1 && select("user", "user", "everybody", page.users.map((name) => [name, name]))}
      <input type="date" aria-label="day" value=${filter.day} onChange=${change("day")} />
      <input class="least" inputmode="decimal" placeholder="$ at least" aria-label="cost at least" value=${filter.usd} onInput=${change("usd")} />
      <input class="least" inputmode="decimal" placeholder="s at least" aria-label="seconds at least" value=${filter.seconds} onInput=${change("seconds")} />
      ${isFiltered && html`<button class="quiet" onClick=${() => setFilter({ ...NO_FILTER, sort: filter.sort })}>all runs</button>`}
      <button disabled=${marked.length !== 2} onClick=${() => { location.hash = `#/compare/${marked[0]}/${marked[1]}`; }}>Compare ${marked.length} of 2</button></div>
    ${error && html`<${Problem} error=${error} />`}
    ${page.programs.length === 0 ? html`<div class="empty"><p>No run was recorded here yet. Begin with:</p>${COMMANDS.map((each) => html`<p key=${each}><code>${each}</code> <${Copy} text=${each} /></p>`)}</div>` : html`
    <table class="grid runs-table"><thead><tr><th><span class="hidden">compare</span></th>${columns.map(([name, text]) => {
      const isSorted = sorted === name;
      return html`<th class=${`${NUMBERS.has(name) && name !== "started" ? "number" : ""}${name && !NARROW.has(name) ? " wide" : ""}`} aria-sort=${isSorted ? (isDown ? "descending" : "ascending") : undefined}>${name ? html`<button class="quiet" onClick=${() => sortBy(name)}>${text}${isSorted ? (isDown ? " ↓" : " ↑") : ""}</button>` : text}</th>`;
    })}</tr></thead>
      ${!isLatest && html`<tbody><${Totals} days=${page.days} columns=${columns.length} /></tbody>`}
      ${groupsOf(shown, isLatest).map(([day, group]) => html`<tbody key=${day}>
        ${isLatest && html`<${Totals} day=${day} days=${day === AT_WORK ? group.filter(isAtWork).map((run) => ({ runs: 1, bad: 0, usd: run.usd || 0, is_unpriced: run.usd === null })) : page.days.filter((each) => each.day === day)} columns=${columns.length} />`}
        ${group.map((run) => html`<tr key=${run.id} data-run=${run.id} class=${isAtWork(run) ? "live" : ""}>
        <td><input type="checkbox" aria-label=${`compare ${run.id}`} checked=${marked.includes(run.id)} onChange=${() => mark(run.id)} /></td>
        <td>${isLatest && run.day === (day === AT_WORK ? page.today : day) ? moment(run.started).slice(11) : moment(run.started)}</td><td class="wide">${fileName(run.program).replace(/\.koi$/, "")}</td>
        <td class="what" style=${{ paddingLeft: `${8 + 18 * run.depth}px` }}>${run.depth > 0 && html`<span class="muted">↳ </span>`}<a href=${`#/run/${run.id}`}>${run.title || run.id}</a></td>
        ${page.users.length > 1 && html`<td class="wide">${run.owner}</td>`}<td><${State} state=${run.state} /></td>
        <td class="number wide">${duration(run.seconds)}</td><td class="number wide">${plain(run.requests)}</td><td class="number wide">${plain(run.tokens)}</td>
        <td class="number cost"><span class="cost-bar" style=${{ width: `${most && run.usd ? Math.max(2, (run.usd / most) * 60) : 0}px` }}></span>${run.usd === null ? "?" : money(run.usd)}</td></tr>`)}</tbody>`)}</table>
    ${shown.length === 0 && html`<${Empty}>No run is like that.<//>`}`}
    ${next && html`<div class="row"><button onClick=${() => load(next)}>More runs</button></div>`}
  </main>`;
}

/** A row with how many runs there are, how many ended badly, and what they cost: of a day, or of all days. */
function Totals({ day, days, columns }) {
  const sum = (name) => days.reduce((total, each) => total + each[name], 0);
  const bad = sum("bad");
  return html`<tr class="totals"><th colspan=${columns + 1} scope="rowgroup">${day || "all"} <span class="muted">${count(sum("runs"), "run")} · ${money(sum("usd"), days.some((each) => each.is_unpriced))}</span>
    ${bad > 0 && html` <span class="state state-failed">${bad} ended badly</span>`}</th></tr>`;
}

/** The runs in groups by the day on which the run that they go on from has begun; one group where another order counts. */
function groupsOf(runs, isLatest) {
  const groups = new Map();
  let day = "";
  for (const run of runs) {
    if (isLatest && run.depth === 0) day = isAtWork(run) ? AT_WORK : run.day;
    groups.set(day, [...(groups.get(day) || []), run]);
  }
  return [...groups];
}

/** What is new of the first page before what was known of further ones. */
function merge(page, known, sort) {
  if (!known || !page.next) return page.runs;
  const fresh = new Set(page.runs.map((run) => run.id));
  const last = page.runs[page.runs.length - 1];
  return [...page.runs, ...known.filter((run) => !fresh.has(run.id) && (sort !== LATEST || run.started <= last.started))];
}

function isAtWork(run) {
  return isLive(run.state) && !["idle", "asleep"].includes(run.state);
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
  const roots = runs.filter((run) => !parentOf(run)).sort((one, two) => isAtWork(two) - isAtWork(one) || two.started - one.started);
  const found = [];
  const add = (run, depth) => {
    found.push({ ...run, depth });
    for (const each of (under.get(run.id) || []).sort((one, two) => one.started - two.started)) add(each, depth + 1);
  };
  for (const run of roots) add(run, 0);
  return found;
}
