// The transcript of a run as the person saw it: what was said, asked, answered and printed, each with the step that it leads to.

import { html } from "../vendor/preact.js";
import { pretty } from "./texts.js";
import { Empty } from "./ui.js";

/** What a person saw of an entry, as `[who, text]`; null where that is nothing. */
export function lineOf(entry) {
  switch (entry.kind) {
    case "call_started":
      return ["person", entry.args?.message ?? (entry.args ? `${entry.name} ${JSON.stringify(entry.args)}` : entry.name)];
    case "printed":
      return ["program", entry.message];
    case "asked":
      return ["program", entry.question];
    case "answered":
      return ["person", entry.answer];
    case "call_ended":
      return entry.ok ? (entry.result === undefined || entry.result === null ? null : ["program", entry.result]) : ["failed", entry.error || "ended"];
    default:
      return null;
  }
}

export function Transcript({ run, onChoose }) {
  const version = run.version.value;
  const lines = [...run.state.entries.values()].map((entry) => [entry, lineOf(entry)]).filter(([, line]) => line);
  if (!lines.length) return html`<${Empty}>Nothing was said to a person.<//>`;
  return html`<div class="transcript" data-version=${version}>${lines.map(([entry, [who, text]]) => html`<div key=${entry.n} class=${`said said-${who}`}>
    <button class="link" title="show the step" onClick=${() => onChoose(entry.n)}>${entry.n}</button> <pre dir="auto">${pretty(text)}</pre></div>`)}</div>`;
}
