// Two runs side by side: what they did differently, causes before what came of them.

import { requestOf } from "../store.js";
import { html, useState } from "../vendor/preact.js";
import { diffLines, diffWords } from "./diff.js";
import { duration, fileName, money, moment, plain, pretty } from "./texts.js";
import { Difference, Empty, Problem, State, useAnswer } from "./ui.js";

export function CompareScreen({ data, one, two }) {
  const [found, error] = useAnswer(() => data.diff(one, two), [one, two]);
  if (error) return html`<main><${Problem} error=${error} /></main>`;
  if (!found) return html`<main><${Empty}>Comparing…<//></main>`;
  const names = [one, two];
  const { differences } = found;
  return html`<main class="compare">
    <h1>Compare</h1>
    <table class="grid"><thead><tr><th>run</th><th>program</th><th>state</th><th>started</th><th class="number">time</th><th class="number">requests</th><th class="number">tokens</th><th class="number">cost</th></tr></thead>
      <tbody>${[found.before, found.after].map((run) => html`<tr key=${run.id}><td><a href=${`#/run/${run.id}`}>${run.id}</a></td><td>${fileName(run.program)}</td><td><${State} state=${run.state} /></td>
        <td>${moment(run.started)}</td><td class="number">${duration(run.seconds)}</td><td class="number">${plain(run.requests)}</td><td class="number">${plain(run.tokens)}</td><td class="number">${money(run.usd, run.unpriced)}</td></tr>`)}
        <tr class="delta"><td>difference</td><td></td><td></td><td></td><td class="number">${signed(found.after.seconds - found.before.seconds, duration)}</td><td class="number">${signed(found.after.requests - found.before.requests, plain)}</td>
          <td class="number">${signed(found.after.tokens - found.before.tokens, plain)}</td><td class="number">${signed(found.after.usd - found.before.usd, money)}</td></tr></tbody></table>
    ${differences.length === 0 && html`<${Empty}>Both runs did the same.<//>`}
    ${differences.length > 0 && html`<p class="muted">${plain(differences.length)}${found.more ? " and more" : ""} differences, in the order in which they came about. The first one is likely to be the cause.</p>`}
    ${differences.slice(0, 300).map((each, at) => html`<${DifferenceRow} key=${at} difference=${each} names=${names} isFirst=${at === 0} data=${data} />`)}
  </main>`;
}

function signed(number, text) {
  return number === 0 ? "0" : `${number > 0 ? "+" : "−"}${text(Math.abs(number))}`;
}

const WORDS = {
  begun: "action", done: "result", failed: "failure", printed: "printed", handler_started: "call", handler_ended: "result of a call",
  handler_failed: "failure of a call", state_changed: "state", model_asked: "was told", model_answered: "model answered", run_ended: "end",
};

export function DifferenceRow({ difference, names, isFirst, data }) {
  const { before, after, kind, path } = difference;
  const texts = [before, after].map((side) => (side ? textOf(side) : null));
  return html`<article class=${`difference-row${isFirst ? " first" : ""}`}>
    <h3>${WORDS[kind] || kind || "step"} ${difference.where ? html`<span class="muted">${difference.where}</span>` : ""} <span class="path">${path.join(" / ") || "the run"}</span>
      ${data && html`<span class="places">${[before, after].map((side, at) => side && html`<a key=${at} href=${`#/run/${names[at]}?entry=${side.n}`}>${names[at]} · ${side.n}</a>`)}</span>`}</h3>
    ${kind === "model_asked" && before && after ? html`<${Prompts} data=${data} path=${path} sides=${[before, after]} names=${names} />`
      : before && after ? html`<${Difference} pieces=${(texts[0].length < 4000 ? diffWords : diffLines)(texts[0], texts[1])} />`
      : html`<pre class="difference">${before ? html`<del>${texts[0]}</del>` : html`<ins>${texts[1]}</ins>`}</pre>`}
    ${!before && html`<p class="muted">only in ${names[1]}</p>`}${!after && html`<p class="muted">only in ${names[0]}</p>`}
  </article>`;
}

function textOf(side) {
  const fields = side.fields || side;
  const names = Object.keys(fields);
  return names.length === 1 ? pretty(fields[names[0]]) : pretty(fields);
}

/** What both models were told, by words; it is fetched when somebody wants to see it. */
function Prompts({ data, sides, names }) {
  const [held, setHeld] = useState(null);
  const show = async () => {
    try {
      const requests = await Promise.all(names.map((name, at) => requestText(data, name, sides[at].n)));
      setHeld({ pieces: diffWords(...requests) });
    } catch (error) {
      setHeld({ error });
    }
  };
  if (held?.error) return html`<${Problem} error=${held.error} />`;
  if (held) return html`<${Difference} pieces=${held.pieces} />`;
  return html`<p>The model was told something else. <button class="link" onClick=${show}>Show the difference</button></p>`;
}

async function requestText(data, id, n) {
  const entries = [];
  for (let since = 0, more = true; more && since < n;) {
    const page = await data.entries(id, since);
    entries.push(...page.entries);
    ({ last: since, more } = page);
  }
  const request = requestOf(entries, n);
  return request ? [request.system, ...request.messages.map(({ role, text }) => `${role}: ${text}`)].join("\n\n") : "";
}
