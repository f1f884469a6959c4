// A run: its source, its timeline and steps, what is known of one of them, and the other views of the same run.

import { html, useEffect, useMemo, useState } from "../vendor/preact.js";
import { BranchDialog, EditBar } from "./branch.js";
import { Costs } from "./costs.js";
import { Inspector } from "./inspector.js";
import { Lanes } from "./lanes.js";
import { Graph, May } from "./program.js";
import { Raw } from "./raw.js";
import { Replay } from "./replay.js";
import { summaryOf } from "../store.js";
import { isLive, openRun } from "./run_store.js";
import { handlerOf, placeOf, SourceView } from "./source_view.js";
import { isWanted, NO_FILTER, Steps } from "./steps.js";
import { Talk } from "./talk.js";
import { count, duration, fileName, money, moment, plain } from "./texts.js";
import { Transcript } from "./transcript.js";
import { Tree } from "./tree.js";
import { Empty, Problem, State, Tabs, useAnswer } from "./ui.js";

export function RunScreen({ data, id, tab, entry, go }) {
  const run = useMemo(() => openRun(data, id), [data, id]);
  useEffect(() => () => run.close(), [run]);
  const [source, sourceError] = useAnswer(() => data.source(id), [id]);
  const [branchAt, setBranchAt] = useState(null);
  const [chosen, setChosen] = useState(null);
  const [filter, setFilter] = useState(NO_FILTER);
  const [scale, setScale] = useState("time");
  const [follow, setFollow] = useState(false);
  const version = run.version.value;
  const { state } = run;
  const isLoaded = run.isLoaded.value;
  useEffect(() => {
    if (isLoaded && entry) setChosen(nodeWith(state, entry));
  }, [isLoaded, entry]);
  useEffect(() => {
    if (isLoaded && isLive(run.status.value)) setFollow(true);
  }, [isLoaded]);
  if (run.problem.value && !isLoaded) return html`<main><${Problem} error=${run.problem.value} /></main>`;
  if (!isLoaded && !(state && state.last)) return html`<main><${Empty}>Reading the run…<//></main>`;
  const node = chosen === null ? null : state.nodes[chosen];
  const found = node && source ? placeOf(node, state, source) : null;
  const place = found && { ...found, name: source.files[found.file].name };
  const handler = node && source ? handlerOf(node, source) : "";
  const playbook = !data.isFile && source?.handlers[handler]?.playbook ? handler : "";
  const choose = (index) => {
    setFollow(false);
    setChosen(index);
  };
  const chooseEntry = (n) => {
    choose(nodeWith(state, n));
    go({ tab: "timeline" });
  };
  const tabs = [["timeline", "Timeline"], ["transcript", "Transcript"], ["tree", "Tree"], ["costs", "Costs"], ["program", "Program"], ["entries", "Entries"], ...(data.isFile ? [] : [["replay", "Replay"]])];
  const isFiltered = Boolean(filter.words || filter.agent || filter.handler || filter.failed);
  return html`<main class="run" data-version=${version}>
    <${Head} run=${run} data=${data} />
    <${EditBar} key=${run.isLoaded.value} run=${run} data=${data} />
    <${Tabs} names=${tabs} chosen=${tab} onChoose=${(name) => go({ tab: name })} label="views of the run" />
    ${tab === "timeline" && html`<div class="panes">
      <section class="pane-source" aria-label="source"><${SourceView} run=${run} source=${source} error=${sourceError} place=${place} filter=${filter} setFilter=${setFilter} /></section>
      <section class="pane-middle" aria-label="timeline">
        <div class="row tools"><label><input type="checkbox" checked=${follow} onChange=${() => setFollow(!follow)} /> follow</label>
          <label>scale <select value=${scale} onChange=${(event) => setScale(event.target.value)}><option value="time">time</option><option value="steps">entries</option></select></label>
          <${Legend} /></div>
        <${Lanes} run=${run} scale=${scale} chosen=${chosen} onChoose=${choose} follow=${follow} setFollow=${setFollow}
          isChosen=${isFiltered ? (each) => isWanted(each, { ...filter, hidden: new Set() }) : null} />
        <${Steps} run=${run} chosen=${chosen} onChoose=${choose} filter=${filter} setFilter=${setFilter} follow=${follow} />
      </section>
      <section class="pane-right" aria-label="what is known of the step"><${Inspector} run=${run} node=${node} place=${place} isFile=${data.isFile} playbook=${playbook} onBranch=${(at, handler) => setBranchAt({ at, handler })} onChoose=${choose} /></section>
    </div>`}
    ${tab === "transcript" && html`<${Transcript} run=${run} onChoose=${chooseEntry} />`}
    ${tab === "tree" && html`<${Tree} run=${run} data=${data} onChoose=${chooseEntry} onBranch=${(at) => setBranchAt({ at })} chosenN=${node?.endN ?? node?.n} />`}
    ${tab === "costs" && html`<${Costs} run=${run} onChoose=${chooseEntry} />`}
    ${tab === "entries" && html`<${Raw} run=${run} />`}
    ${tab === "replay" && html`<${Replay} data=${data} id=${id} />`}
    ${tab === "program" && html`<div class="program"><${Graph} ask=${() => data.graph(id)} id=${id} state=${state} />${!data.isFile && html`<${May} ask=${() => data.audit(id)} id=${id} state=${state} />`}</div>`}
    <${Talk} run=${run} data=${data} />
    ${branchAt !== null && html`<${BranchDialog} run=${run} data=${data} at=${branchAt.at} handler=${branchAt.handler} onClose=${() => setBranchAt(null)} />`}
  </main>`;
}

/** The index of the step that an entry belongs to. */
function nodeWith(state, n) {
  let found = null;
  for (const node of state.nodes) {
    if (node.n === n || node.endN === n) return node.index;
    if (node.n < n) found = node.index;
  }
  return found;
}

function Head({ run, data }) {
  const version = run.version.value;
  const { state } = run;
  const { totals } = state;
  const outcome = summaryOf(state).state;
  const status = run.open.value.size ? "waiting" : isLive(run.status.value) ? run.status.value : outcome === "interrupted" ? run.status.value || "interrupted" : outcome;
  const isRunning = ["working", "waiting"].includes(status);
  const [now, setNow] = useState(0);
  useEffect(() => {
    if (!isRunning) return undefined;
    const clock = setInterval(() => setNow(Date.now() / 1000), 1000);
    return () => clearInterval(clock);
  }, [isRunning]);
  const facts = [duration(isRunning ? Math.max(state.seconds, now - state.started) : state.seconds), count(totals.requests, "request"), `${plain(totals.tokens)} tokens`, money(totals.usd, totals.unpriced), count(state.last, "entry").replace("entrys", "entries")];
  const header = state.header;
  return html`<header class="run-head" data-version=${version}>
    <h1>${state.title || header.run} <${State} state=${status} /></h1>
    <p class="facts-line"><b>${fileName(header.program)}</b> <span title="id of the run">${header.run}</span> <span>${moment(header.started)}</span> ${facts.map((fact) => html`<span key=${fact}>${fact}</span>`)}
      ${header.parent && html`<span>branch of <a href=${`#/run/${header.parent[0]}`}>${header.parent[0]}</a> from entry ${header.parent[1]} · <a href=${`#/compare/${header.parent[0]}/${header.run}`}>compare</a></span>`}
      ${!data.isFile && html`<a href=${data.exportAddress(run.id)} download=${`${header.run}.html`}>save as a page</a>`}</p>
    ${state.failure && status === "failed" && html`<div class="problem" role="alert">${state.failure.error}</div>`}
  </header>`;
}

function Legend() {
  return html`<span class="legend" aria-hidden="true">${["handler", "model", "action", "effect", "wait", "failed"].map((kind) => html`<span key=${kind}><i class=${`dot dot-${kind}`}></i>${{ handler: "handler", model: "model", action: "action", effect: "code", wait: "person", failed: "failed" }[kind]}</span>`)}</span>`;
}
