// The beginning: who can be talked to, what for, and examples.

import { html } from "../vendor/preact.js";
import { Composer } from "./composer.js";
import { go, place, programs, targets } from "./store.js";
import { spoken } from "./words.js";

/** The agents that are meant for people; the one that was chosen, or the only one, with an input. */
export function Start() {
  const all = targets();
  const { program, handler } = place.value;
  const chosen = all.length === 1 ? all[0] : all.find((each) => each.program === program && each.handler === handler);
  if (chosen) return html`<${Beginning} key=${chosen.handler} target=${chosen} isOnly=${all.length === 1} />`;
  const broken = programs.value.filter((each) => each.ok === false);
  return html`
    <div class="start">
      <h1>${all.length ? "Who can help?" : "Nobody here takes messages"}</h1>
      ${!all.length && html`<p class="quiet">Whoever runs this service has to give an agent something to say to people.</p>`}
      <ul class="agents">${all.map((each) => html`<li key=${each.program + each.handler}>
        <button type="button" class="card agent" onClick=${() => go("new", each.program, each.handler)}>
          <span class="name">${spoken(each.agent)}</span><span class="purpose" dir="auto">${each.title || "Ask anything"}</span>
        </button></li>`)}
      </ul>
      ${broken.map((each) => html`<p class="quiet small" key=${each.name}>${spoken(each.name)} is not available at the moment.</p>`)}
    </div>`;
}

function Beginning({ target, isOnly }) {
  if (isOnly && !place.value.handler) place.value = { program: target.program, handler: target.handler };
  return html`
    <div class="start beginning">
      <h1 dir="auto">${target.title || spoken(target.agent)}</h1>
      ${target.title && html`<p class="quiet">${spoken(target.agent)}</p>`}
    </div>
    <div class="dock"><${Composer} hint="Write a message" examples=${target.examples || []} /></div>`;
}
