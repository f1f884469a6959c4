// What models took: over time, by agent, by handler and by turn.

import { html } from "../vendor/preact.js";
import { count, duration, money, plain } from "./texts.js";
import { Bars, Empty } from "./ui.js";

const [WIDE, HIGH, LEFT] = [720, 150, 64];

export function Costs({ run, onChoose }) {
  const version = run.version.value;
  const { state } = run;
  if (!state.turns.length) return html`<${Empty}>No model was asked.<//>`;
  const hasPrice = state.turns.some((turn) => turn.usd > 0);
  const sized = (held) => (hasPrice ? held.usd : held.tokens);
  const row = (held) => ({ name: held.name, size: sized(held), cells: [count(held.requests, "request"), `${plain(held.tokens)} tok`, money(held.usd, held.unpriced)] });
  const asked = (held) => held.requests > 0;
  return html`<div class="costs" data-version=${version}>
    <h3>${hasPrice ? "Money" : "Tokens"} over time</h3>
    <${Growth} state=${state} value=${hasPrice ? (turn) => turn.usd : (turn) => turn.tokens} text=${hasPrice ? money : (number) => plain(Math.round(number))} />
    <h3>By agent</h3><${Bars} rows=${[...state.agents.values()].filter(asked).map(row)} />
    <h3>By handler</h3><${Bars} rows=${[...state.handlers.values()].filter(asked).map(row)} />
    <h3>By turn</h3>
    <table class="grid"><thead><tr><th>entry</th><th>at</th><th>agent</th><th>model</th><th class="number">in</th><th class="number">from cache</th><th class="number">out</th><th class="number">cost</th></tr></thead>
    <tbody>${state.turns.slice(-500).map((turn) => html`<tr key=${turn.n} class="can" onClick=${() => onChoose(turn.n)}>
      <td>${turn.n}</td><td>${duration(turn.ts - state.started)}</td><td>${turn.agent}</td><td>${turn.model}</td>
      <td class="number">${plain(turn.input)}</td><td class="number">${plain(turn.cached)}</td><td class="number">${plain(turn.output)}</td>
      <td class="number">${money(turn.usd, turn.unpriced)}</td></tr>`)}</tbody></table>
    ${state.turns.length > 500 && html`<p class="muted">The last 500 of ${plain(state.turns.length)} turns.</p>`}
  </div>`;
}

/** A line that grows with each turn. */
function Growth({ state, value, text }) {
  let sum = 0;
  const end = Math.max(state.seconds, 0.001);
  const points = state.turns.map((turn) => [(turn.ts - state.started) / end, (sum += value(turn))]);
  const x = (part) => LEFT + part * (WIDE - LEFT - 10);
  const y = (amount) => HIGH - 20 - (sum ? amount / sum : 0) * (HIGH - 36);
  let line = `M${x(0)} ${y(0)}`;
  for (const [part, amount] of points) line += `H${x(part).toFixed(1)}V${y(amount).toFixed(1)}`;
  line += `H${x(1)}`;
  return html`<svg class="growth" viewBox=${`0 0 ${WIDE} ${HIGH}`} role="img" aria-label=${`grows to ${text(sum)}`}>
    ${[0, 0.5, 1].map((part) => html`<g key=${part}><line x1=${LEFT} x2=${WIDE - 10} y1=${y(part * sum)} y2=${y(part * sum)} class="rule" />
      <text x=${LEFT - 6} y=${y(part * sum) + 4} text-anchor="end">${text(part * sum)}</text></g>`)}
    ${[0, 0.5, 1].map((part) => html`<text key=${`t${part}`} x=${x(part)} y=${HIGH - 4} text-anchor=${part === 1 ? "end" : part ? "middle" : "start"}>${duration(part * end)}</text>`)}
    <path d=${`${line}V${y(0)}H${x(0)}Z`} class="area" /><path d=${line} class="curve" /></svg>`;
}
