// The tree of a run: the entries that one can go back to, and the branches that were begun there.

import { placesOf } from "../store.js";
import { html, useMemo, useState } from "../vendor/preact.js";
import { moment } from "./texts.js";
import { Empty, Problem, State, useAnswer, VirtualList } from "./ui.js";

export function Tree({ run, data, onChoose, onBranch, chosenN }) {
  const version = run.version.value;
  const [words, setWords] = useState("");
  const [family, error] = useAnswer(() => data.tree(run.id), [run.id, run.status.value]);
  const places = useMemo(() => placesOf(run.state).filter((place) => place.text.toLowerCase().includes(words.toLowerCase())), [version, words]);
  const begun = new Map();
  for (const each of family?.runs || []) if (each.parent === run.state.header.run) begun.set(each.entry, [...(begun.get(each.entry) || []), each]);
  const at = places.findIndex((place) => place.n === chosenN);
  const row = (index) => {
    const place = places[index];
    const branches = begun.get(place.n) || [];
    return html`<div key=${place.n} class=${`place${place.n === chosenN ? " chosen" : ""}`} role="option" aria-selected=${place.n === chosenN} onClick=${() => onChoose(place.n)}>
      <span class="place-n">${place.n}</span>
      <span class="place-text" style=${{ paddingLeft: `${Math.min(place.depth, 12) * 14}px` }}>${place.text}</span>
      ${branches.map((each) => html`<a key=${each.run} class="branch-link" href=${`#/run/${each.run}`} onClick=${(event) => event.stopPropagation()}>↳ ${each.run}</a>`)}
      ${!data.isFile && html`<button class="quiet" onClick=${(event) => { event.stopPropagation(); onBranch(place.n, null); }}>branch${place.canAnswer ? " or answer" : ""}…</button>`}
    </div>`;
  };
  return html`<div class="tree">
    ${error ? html`<${Problem} error=${error} />` : html`<${Family} family=${family} current=${run.state.header.run} />`}
    <div class="filters"><input type="search" placeholder="find an entry" aria-label="find an entry" value=${words} onInput=${(event) => setWords(event.target.value)} />
      <span class="muted">${places.length} entries that one can go back to</span></div>
    ${places.length ? html`<${VirtualList} count=${places.length} height=${26} label="entries" reveal=${at} row=${row} />` : html`<${Empty}>There is nothing to go back to.<//>`}
  </div>`;
}

/** The runs that are connected by branching, each under the one that it goes on from. */
function Family({ family, current }) {
  const runs = family?.runs || [];
  if (runs.length < 2) return html`<p class="muted">This run has no branches.</p>`;
  const known = new Set(runs.map((each) => each.run));
  const under = (parent) => runs.filter((each) => (parent === null ? !known.has(each.parent) : each.parent === parent));
  const list = (parent) => html`<ul>${under(parent).map((each) => html`<li key=${each.run}>
    ${each.run === current ? html`<b>${each.run}</b>` : html`<a href=${`#/run/${each.run}`}>${each.run}</a>`}
    ${each.state && html` <${State} state=${each.state} />`} <span class="muted">${moment(each.started)}${each.parent ? `, from entry ${each.entry}` : ""}</span>
    ${each.run !== current && html` <a href=${`#/compare/${current}/${each.run}`}>compare</a>`}
    ${list(each.run)}</li>`)}</ul>`;
  return html`<nav class="family" aria-label="branches">${list(null)}</nav>`;
}
