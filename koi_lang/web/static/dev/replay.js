// A replay: the program of now against the answers that were recorded, and what it does differently.

import { html, useState } from "../vendor/preact.js";
import { DifferenceRow } from "./compare.js";
import { count } from "./texts.js";
import { Empty, Problem } from "./ui.js";

export function Replay({ data, id }) {
  const [held, setHeld] = useState({ isBusy: false, error: null, outcome: null });
  const begin = async () => {
    setHeld({ isBusy: true, error: null, outcome: null });
    try {
      setHeld({ isBusy: false, error: null, outcome: await data.replay(id) });
    } catch (error) {
      setHeld({ isBusy: false, error, outcome: null });
    }
  };
  const { outcome } = held;
  return html`<div class="replay">
    <p>The program runs as it is now, against the answers that were recorded: without network, keys or models, and without doing anything outside.</p>
    <button class="primary" disabled=${held.isBusy} onClick=${begin}>${held.isBusy ? "Replays…" : "Replay"}</button>
    ${held.error && html`<${Problem} error=${held.error} />`}
    ${outcome && html`<p role="status"><b>${outcome.same ? "Nothing is different" : count(outcome.differences.length, "difference")}</b>, ${count(outcome.actions, "action")} and ${count(outcome.answers, "model answer")} were compared.</p>
      ${outcome.error && html`<p class="warning">The run ended with: ${outcome.error}</p>`}
      ${outcome.requests.length > 0 && html`<p class="muted">A model is told something else than before in ${outcome.requests.join("; ")}.</p>`}
      ${outcome.faults.map((fault) => html`<p key=${fault} class="warning">${fault}</p>`)}
      ${outcome.differences.map((each, at) => html`<${DifferenceRow} key=${at} difference=${each} names=${["recorded", "now"]} />`)}`}
    <${KeepTest} data=${data} id=${id} />
    ${!outcome && !held.error && !held.isBusy && html`<${Empty}>Nothing was replayed yet.<//>`}
  </div>`;
}

/** A run copied into the folder of tests, where `koi test` replays it. */
function KeepTest({ data, id }) {
  const [name, setName] = useState(id);
  const [held, setHeld] = useState({ file: "", error: null });
  const keep = async (event) => {
    event.preventDefault();
    try {
      setHeld({ file: (await data.keepTest(id, name)).file, error: null });
    } catch (error) {
      setHeld({ file: "", error });
    }
  };
  return html`<form class="row" onSubmit=${keep}><label>As a test: <input aria-label="name of the test" value=${name} onInput=${(event) => setName(event.target.value)} /></label>
    <button disabled=${!name.trim()}>Keep as test</button>${held.file && html`<span role="status">Kept as <code>${held.file}</code>; <code>koi test</code> replays it.</span>`}</form>
    ${held.error && html`<${Problem} error=${held.error} />`}`;
}
