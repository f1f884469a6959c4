// What is known of one step: its fields and result, what a model was told and wrote, state before and after, its place.

import { agentState, requestOf } from "../store.js";
import { html, useMemo, useState } from "../vendor/preact.js";
import { diffLines } from "./diff.js";
import { duration, money, moment, plain, pretty, prettyText } from "./texts.js";
import { Copy, Difference, Empty, Tabs, Text } from "./ui.js";

export function Inspector({ run, node, place, playbook, onBranch, isFile, onChoose }) {
  const version = run.version.value;
  const tabs = node ? tabsOf(node) : [];
  const [wanted, setTab] = useState("about");
  const tab = tabs.some(([key]) => key === wanted) ? wanted : "about";
  if (!node) return html`<${Empty}>Choose a bar or a step to see what is known of it.<//>`;
  const state = run.state;
  return html`<div class="inspector">
    <h2><i class=${`dot dot-${node.kind}`}></i>${node.title}</h2>
    <${Tabs} names=${tabs} chosen=${tab} onChoose=${setTab} label="about the step" />
    ${tab === "about" && html`<${About} state=${state} node=${node} place=${place} playbook=${playbook} onBranch=${onBranch} isFile=${isFile} onChoose=${onChoose} version=${version} />`}
    ${tab === "told" && html`<${Told} state=${state} node=${node} />`}
    ${tab === "wrote" && html`<${Wrote} state=${state} node=${node} onChoose=${onChoose} />`}
    ${tab === "state" && html`<${StateOf} state=${state} node=${node} />`}
    ${tab === "entries" && html`<${Entries} state=${state} node=${node} />`}
  </div>`;
}

function tabsOf(node) {
  const tabs = [["about", "about"]];
  if (node.kind === "model") tabs.push(["told", "was told"], ["wrote", "wrote"]);
  if (node.agent) tabs.push(["state", "state"]);
  return [...tabs, ["entries", "entries"]];
}

function entriesOf(state, node) {
  const key = node.path.join("\n");
  return [...state.entries.values()].filter((entry) => entry.n === node.n || entry.n === node.endN
    || (node.kind !== "point" && entry.path.join("\n") === key && entry.n >= node.n && entry.n <= (node.endN ?? state.last)));
}

function About({ state, node, place, playbook, onBranch, isFile, onChoose }) {
  const [began, ended] = [state.entries.get(node.n), state.entries.get(node.endN)];
  const inside = node.outer === null ? null : state.nodes[node.outer];
  const at = node.endN ?? node.n;
  const rows = [
    ["agent", node.agent],
    ["status", node.status === "open" ? "under way" : node.status === "cut" ? "was ended from outside" : node.status],
    ["began", `${node.t0.toFixed(3)} s, ${moment(state.started + node.t0)}`],
    ["took", node.kind === "point" ? "" : node.t1 === null ? "" : duration(node.t1 - node.t0)],
    ["model", node.model],
    ["tokens", node.tokens ? `${plain(node.tokens)}, ${money(node.usd, node.unpriced)}` : ""],
    ["as", node.as],
    ["taken over", node.recalled ? "from the run that this one is a branch of" : ""],
    ["line", place ? `${place.name}:${place.line}${place.isExact ? "" : " (in this handler)"}` : ""],
  ];
  return html`<div class="about">
    <table class="facts"><tbody>${rows.filter(([, value]) => value).map(([name, value]) => html`<tr key=${name}><th scope="row">${name}</th><td>${value}</td></tr>`)}
      ${inside && html`<tr><th scope="row">within</th><td><button class="link" onClick=${() => onChoose(inside.index)}>${inside.title}</button></td></tr>`}
      <tr><th scope="row">place</th><td class="path">${node.path.join(" / ") || "the run"}</td></tr>
      <tr><th scope="row">entry</th><td>${node.n}${node.endN && node.endN !== node.n ? ` to ${node.endN}` : ""}
        <${Copy} title="copy the command that goes back here" text=${`koi resume ${state.header.run} --at ${at}`} /></td></tr>
    </tbody></table>
    ${node.error && html`<div class="problem">${node.error}</div>`}
    ${hooks(state, node).map((entry) => html`<div class="note">hook: ${entry.decision}${entry.reason ? `, ${pretty(entry.reason)}` : ""}</div>`)}
    ${began && given(began) !== undefined && html`<${Text} label=${began.kind === "handler_started" ? "was given" : "fields"} text=${pretty(given(began))} />`}
    ${ended && ended !== began && came(ended) !== undefined && html`<${Text} label="came of it" text=${pretty(came(ended))} />`}
    ${!isFile && html`<div class="row">${ended && html`<button onClick=${() => onBranch(at)}>Branch here…</button>`}
      ${playbook && html`<button onClick=${() => onBranch(at, playbook)}>Edit the playbook…</button>`}</div>`}
  </div>`;
}

function hooks(state, node) {
  const prefix = `${node.path.join("\n")}\n`;
  return node.kind === "action"
    ? [...state.entries.values()].filter((entry) => entry.kind === "hook_decided" && `${entry.path.join("\n")}\n`.startsWith(prefix))
    : [];
}

function given(entry) {
  return entry.kind === "handler_started" ? entry.args : entry.fields ?? entry.message ?? entry.updates ?? entry.question ?? entry.detail ?? entry.text;
}

function came(entry) {
  return entry.kind === "model_answered" ? undefined : entry.result ?? entry.answer;
}

function Told({ state, node }) {
  const request = useMemo(() => requestOf(state.entries.values(), node.n), [node.n]);
  const [isWhole, setWhole] = useState(false);
  if (!request) return html`<${Empty}>What the model was told was not recorded.<//>`;
  const kept = request.messages.filter((message) => !message.isNew);
  const shown = isWhole ? request.messages : request.messages.filter((message) => message.isNew);
  return html`<div>
    <p class="muted">${request.isNewSystem ? "The rules are new to the model." : "The rules are as before."} ${kept.length
      ? html`${kept.length} messages stood before; <button class="link" onClick=${() => setWhole(!isWhole)}>${isWhole ? "show only what is new" : "show them, too"}</button>` : ""}</p>
    <details open=${request.isNewSystem}><summary>rules and playbook (${plain(request.system.length)} characters)</summary><${Text} text=${request.system} tall /></details>
    ${shown.map((message, at) => html`<div key=${at} class=${message.isNew ? "message new" : "message"}><${Text} label=${message.role} text=${prettyText(message.text)} /></div>`)}
  </div>`;
}

function Wrote({ state, node, onChoose }) {
  const caused = state.nodes.filter((other) => other.kind === "action" && other.n > node.n && sameCall(other, node)
    && !state.nodes.some((next) => next.kind === "model" && sameCall(next, node) && next.n > node.n && next.n < other.n));
  return html`<div>
    <p class="muted">${node.stop && node.stop !== "stop" ? `It ended because of: ${node.stop}. ` : ""}${node.tokens ? `${plain(node.tokens)} tokens, ${money(node.usd, node.unpriced)}` : ""}</p>
    <${Text} label="answer" text=${prettyText(node.text || "")} tall />
    ${caused.length > 0 && html`<p class="muted">What came of it:</p><ul class="links">${caused.map((other) => html`<li key=${other.index}><button class="link" onClick=${() => onChoose(other.index)}>${other.title}</button> ${other.detail}</li>`)}</ul>`}
  </div>`;
}

function sameCall(one, other) {
  return one.path.slice(0, -1).join("\n") === other.path.slice(0, -1).join("\n");
}

function StateOf({ state, node }) {
  const last = node.endN ?? state.last;
  const [before, after] = [agentState(state, node.agent, node.n - 1), agentState(state, node.agent, last)];
  const [one, two] = [JSON.stringify(before, null, 2), JSON.stringify(after, null, 2)];
  const registry = [...state.entries.values()].filter((entry) => entry.n >= node.n && entry.n <= last && entry.kind === "done"
    && /^registry[._](set|delete|update)/.test(entry.intent || ""));
  return html`<div>
    <p class="muted">State of ${node.agent}${one === two ? " (not changed here)" : ", before and after"}</p>
    ${one === two ? html`<${Text} text=${one} />` : html`<${Difference} pieces=${diffLines(one, two)} />`}
    ${registry.length > 0 && html`<p class="muted">Registry</p>${registry.map((entry) => html`<${Text} key=${entry.n} label=${entry.intent} text=${pretty(entry.fields)} />`)}`}
  </div>`;
}

function Entries({ state, node }) {
  return html`<div>${entriesOf(state, node).map((entry) => html`<${Text} key=${entry.n} label=${`${entry.n} ${entry.kind}`} text=${pretty(entry)} />`)}</div>`;
}
