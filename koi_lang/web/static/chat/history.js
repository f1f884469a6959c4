// Earlier conversations of the person.

import { html, useState } from "../vendor/preact.js";
import { Icon } from "./icons.js";
import { forget, go, loadRuns, nextRuns, place, problem, runs } from "./store.js";
import { when } from "./words.js";

const WORDS = { working: "working", waiting: "waits for you", paused: "paused", failed: "did not work" };

/** The list, newest first; `onChosen` is told when one was chosen. */
export function History({ onChosen }) {
  const [asked, setAsked] = useState("");
  const guarded = (work) => work.catch((error) => (problem.value = error));
  return html`
    <button type="button" class="button new" onClick=${() => (go(), onChosen())}><${Icon} name="plus" />New conversation</button>
    <ul class="history">
      ${runs.value.map((run) => html`<li key=${run.id} class=${run.id === place.value.run ? "here" : ""}>
        <a href=${`#/run/${encodeURIComponent(run.id)}`} aria-current=${run.id === place.value.run ? "page" : undefined} onClick=${onChosen}>
          <span class="title" dir="auto">${run.title || "Conversation"}</span>
          <span class=${`about small ${run.state}`}>${WORDS[run.state] ? `${WORDS[run.state]} · ` : ""}${when(run.updated || run.started)}</span>
        </a>
        ${asked === run.id
          ? html`<span class="sure"><button type="button" class="button small" onClick=${() => (setAsked(""), guarded(forget(run.id)))}>Delete</button><button type="button" class="button plain small" onClick=${() => setAsked("")}>Keep</button></span>`
          : html`<button type="button" class="button plain icon" aria-label=${`Delete ${run.title || "conversation"}`} onClick=${() => setAsked(run.id)}><${Icon} name="trash" /></button>`}
      </li>`)}
    </ul>
    ${!runs.value.length && html`<p class="quiet small none">No conversations yet</p>`}
    ${nextRuns.value && html`<button type="button" class="button plain small" onClick=${() => guarded(loadRuns(true))}>Show more</button>`}`;
}
