// The bar below a run that works: what it waits for, and what whoever watches it can say.

import { html, useState } from "../vendor/preact.js";
import { requestOf } from "./run_store.js";
import { count, pretty } from "./texts.js";
import { DiffText, Problem } from "./ui.js";

// States in which something goes on that can be told something.
const AT_WORK = new Set(["working", "waiting", "paused"]);

export function Talk({ run, data }) {
  const [words, setWords] = useState("");
  const [problem, setProblem] = useState(null);
  const status = run.status.value;
  const requests = [...run.open.value.values()];
  const writing = [...run.writing.value.values()];
  if (data.isFile || !run.canTalk.value || (!AT_WORK.has(status) && !requests.length)) return null;
  const act = async (operation, body) => {
    setProblem(null);
    try {
      await data.act(run.id, operation, body);
      return true;
    } catch (error) {
      setProblem(error);
      return false;
    }
  };
  const steer = async (event) => {
    event.preventDefault();
    if (words.trim() && (await act("steer", { message: words }))) setWords("");
  };
  return html`<section class="talk" aria-label="talk to the run">
    ${!run.isConnected.value && html`<div class="warning" role="status">The connection is lost; it goes on where it was as soon as the service answers.</div>`}
    ${writing.map((each, at) => html`<div key=${at} class="writing"><b>${each.agent}</b> ${each.text}</div>`)}
    ${requests.map((request) => html`<${Request} key=${requestOf(request)} request=${request} act=${act} />`)}
    ${problem && html`<${Problem} error=${problem} />`}
    ${AT_WORK.has(status) && html`<form class="row" onSubmit=${steer}>
      <input class="grow" aria-label="say something to the agents at work" placeholder="say something to the agents at work" value=${words} onInput=${(event) => setWords(event.target.value)} />
      <button disabled=${!words.trim()}>Steer</button>
      ${status === "paused" ? html`<button type="button" onClick=${() => act("continue")}>Continue</button>` : status === "working" && html`<button type="button" onClick=${() => act("pause")}>Pause</button>`}
      <button type="button" class="danger" onClick=${() => act("cancel")}>Cancel</button>
    </form>`}
  </section>`;
}

function Request({ request, act }) {
  return request.type === "question" ? html`<${Question} request=${request} act=${act} />` : html`<${Approval} request=${request} act=${act} />`;
}

function Question({ request, act }) {
  const [answer, setAnswer] = useState("");
  const give = (text) => act("answer", { request: requestOf(request), answer: text });
  return html`<form class="request" onSubmit=${(event) => { event.preventDefault(); give(answer); }}>
    <b>${request.question}</b>
    <div class="row">${(request.options || []).map((option) => html`<button type="button" key=${String(option)} onClick=${() => give(option)}>${String(option)}</button>`)}
      <input class="grow" aria-label="answer" value=${answer} onInput=${(event) => setAnswer(event.target.value)} /><button disabled=${!answer}>Answer</button></div>
  </form>`;
}

function Approval({ request, act }) {
  const [reason, setReason] = useState("");
  const decide = (decision) => act("approve", { request: requestOf(request), decision, ...(reason ? { reason } : {}) });
  return html`<div class="request">
    <b>May it ${request.what}?</b> ${request.chain && html`<span class="muted">asked by ${request.chain.join(" → ")}</span>`}
    ${request.diff ? html`<${DiffText} text=${request.diff} />` : request.detail && html`<pre>${pretty(request.detail)}</pre>`}
    <div class="row"><button class="primary" onClick=${() => decide("yes")}>Yes</button><button onClick=${() => decide("always")}>Always</button>
      <button class="danger" onClick=${() => decide("no")}>No</button>
      <input class="grow" aria-label="why not" placeholder="why not" value=${reason} onInput=${(event) => setReason(event.target.value)} /></div>
  </div>`;
}

/** What a run waits for, in words. */
export function waitsFor(run) {
  const open = run.open.value.size;
  return open ? `waits for ${count(open, "answer")}` : "";
}
