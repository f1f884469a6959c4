// The conversation as it stands on the page.

import { Component, html, signal, useEffect, useRef, useState } from "../vendor/preact.js";
import { versionsOf } from "./branches.js";
import { Icon } from "./icons.js";
import { Markdown, plainText } from "./markdown.js";
import { Diff, Words } from "./requests.js";
import { conversation, deliver, dropLetter, family, go, place, problem, sayAgain, sayInBranch, unsent, user, version } from "./store.js";
import { duration, finishedLength, refusalText, spoken, stepDetails, summary, withFiles, withoutFiles } from "./words.js";

// So many of the last items are on the page; more on request.
const MOST_SHOWN = 150;
const NEAR_PX = 120;

// Whether the person has scrolled away from the end.
const isAway = signal(false);

/** A way back to the end. */
export const Jump = () => isAway.value && html`<button type="button" class="button jump" onClick=${() => scrollTo({ top: document.documentElement.scrollHeight, behavior: "smooth" })}><${Icon} name="below" />Latest</button>`;

/** All items, the newest below; stays at the end unless the person has scrolled away from it and said nothing since. */
export function Thread() {
  const held = conversation.value;
  const [most, setMost] = useState(MOST_SHOWN);
  const end = useRef(null), isNear = useRef(true), lastSent = unsent().at(-1)?.id;
  version.value;
  useEffect(() => {
    const look = () => {
      isNear.current = innerHeight + scrollY > document.documentElement.scrollHeight - NEAR_PX;
      isAway.value = !isNear.current;
    };
    addEventListener("scroll", look, { passive: true });
    return () => removeEventListener("scroll", look);
  }, []);
  useEffect(() => {
    if (lastSent) isNear.current = true;
  }, [lastSent]);
  useEffect(() => {
    if (isNear.current) scrollTo({ top: document.documentElement.scrollHeight });
  });
  const shown = held.items.slice(-most), hidden = held.items.length - shown.length;
  return html`
    <div class="thread">
      ${hidden > 0 && html`<button type="button" class="button plain small" onClick=${() => setMost(most + MOST_SHOWN)}>Show what was before</button>`}
      ${shown.map((item) => html`<${Item} key=${item.key} item=${item} version=${item.version} />`)}
      ${held.waiting.map((each) => html`<div key=${`waiting-${each.id}`} class="item person waiting"><div class="bubble" dir="auto">${each.text}</div><p class="quiet small">${held.requests.length ? "Will be heard after your answer" : "Will be heard in a moment"}</p></div>`)}
      ${unsent().map((each) => html`<${Letter} key=${each.id} letter=${each} state=${each.state} />`)}
      <${Now} held=${held} />
      <div ref=${end} />
    </div>
    <${Heard} held=${held} />`;
}

/** An item, drawn again only when it has changed. */
class Item extends Component {
  shouldComponentUpdate(next) {
    return next.item !== this.props.item || next.version !== this.props.version;
  }

  render({ item }) {
    return html`<${VIEWS[item.kind]} item=${item} version=${item.version} />`;
  }
}

const VIEWS = {
  person: ({ item }) => html`<${Person} item=${item} />`,
  answer: ({ item }) => html`<div class=${`item answer ${item.isGrowing ? "growing" : ""}`}><span class="only-heard">${spoken(item.agent)}: </span><${Markdown} text=${item.text} />${!item.isGrowing && html`<${Actions} item=${item} />`}</div>`,
  work: ({ item }) => html`<${Work} item=${item} />`,
  asked: ({ item }) => item.answer === null ? null : item.rows?.length > 1 ? html`<div class="item decided"><${Icon} name="list" /><div><${Markdown} text=${item.head} /><dl class="values">${item.rows.map(([name, answer]) => html`<div><dt dir="auto">${spoken(name)}</dt><dd dir="auto" class="given">${answer || "–"}</dd></div>`)}</dl></div></div>` : html`<div class="item decided"><${Icon} name="ask" /><div><${Markdown} text=${item.text} /><p class="given" dir="auto">${item.answer || "(nothing)"}</p></div></div>`,
  allowed: ({ item }) => html`<div class=${`item decided ${item.answer === "no" ? "refused" : ""}`}><${Icon} name="hand" /><div><p>${item.answer === "no" ? "You did not allow" : item.answer === "always" ? "You always allow" : "You allowed"} to <${Words} text=${item.what} /></p>${item.reason && html`<p class="quiet" dir="auto">${item.reason}</p>`}</div></div>`,
  plan: ({ item }) => html`
    <div class="item decided"><${Icon} name="list" /><div>
      <p>${item.answer === "accepted" ? "Plan accepted" : item.answer === "refused" ? "Plan refused" : "Proposed plan"}${item.words && html`: ${item.words}`}</p>
      <ol class="plan-steps">${item.steps.map((step, at) => html`<li dir="auto" class=${at < item.done ? "done" : ""}>${step}${at < item.done && html` <span class="only-heard">done</span>`}</li>`)}</ol>
    </div></div>`,
  result: ({ item }) => html`<div class="item answer" aria-busy=${item.isGrowing}><${Value} value=${item.value} /></div>`,
  note: ({ item }) => html`<p class="item note quiet small" dir="auto">${item.text}</p>`,
  failure: ({ item }) => html`<${Failure} item=${item} />`,
};

/** A message of the person, which can be written anew. */
function Person({ item }) {
  const [isEditing, setEditing] = useState(false);
  const box = useRef(null);
  const send = (event) => {
    event.preventDefault();
    const text = withFiles(box.current.value.trim(), withoutFiles(item.text).names);
    if (text) sayInBranch(item, text).catch((error) => (problem.value = error));
    setEditing(false);
  };
  if (isEditing) return html`
    <form class="item editing card" onSubmit=${send}>
      <label class="only-heard" for="editing">Your message</label>
      <textarea id="editing" dir="auto" rows="3" class="field" ref=${(element) => element && !box.current && ((box.current = element), element.focus(), element.setSelectionRange(element.value.length, element.value.length))}>${withoutFiles(item.text).text}</textarea>
      <div class="choices"><button class="button main">Send</button><button type="button" class="button" onClick=${() => ((box.current = null), setEditing(false))}>Cancel</button></div>
    </form>`;
  return html`
    <div class="item person">
      ${item.images.length > 0 && html`<div class="pictures">${item.images.map((image) => html`<img src=${pictureOf(image)} alt="picture that was sent" />`)}</div>`}
      ${item.text ? html`<${Said} text=${item.text} />` : html`<div class="bubble"><span class="quiet">${item.about}</span>${item.fields && html`<${Value} value=${item.fields} />`}</div>`}
      ${item.wasHeard && html`<p class="quiet small">Heard while working</p>`}
      ${item.text && html`<${Actions} item=${item} onEdit=${item.from ? () => ((box.current = null), setEditing(true)) : null} />`}
    </div>`;
}

/** What can be done with a message: copy it, write it anew, have it answered again, look at its other versions. */
function Actions({ item, onEdit }) {
  const [isCopied, setCopied] = useState(false);
  version.value;
  const held = conversation.value, run = place.value.run;
  const copy = () => navigator.clipboard?.writeText(withoutFiles(item.text).text).then(() => (setCopied(true), setTimeout(() => setCopied(false), 1500)), () => {});
  const isLast = item.kind === "answer" && !held.busy && held.items.findLast((each) => each.kind === "answer") === item;
  const asked = isLast && held.items.findLast((each) => each.kind === "person" && each.call && each.text);
  const { runs, at } = item.call ? versionsOf(family.value, run, item.call) : { runs: [] };
  return html`
    <div class="actions">
      ${runs.length > 1 && at >= 0 && html`<span class="versions">
        <button type="button" class="button plain icon" aria-label="Version before" disabled=${at === 0} onClick=${() => go("run", runs[at - 1])}><${Icon} name="back" /></button>
        <span class="small">${at + 1} of ${runs.length}</span>
        <button type="button" class="button plain icon" aria-label="Next version" disabled=${at === runs.length - 1} onClick=${() => go("run", runs[at + 1])}><${Icon} name="next" /></button></span>`}
      <button type="button" class="button plain icon" aria-label=${isCopied ? "Copied" : "Copy"} title="Copy" onClick=${copy}><${Icon} name=${isCopied ? "tick" : "copy"} /></button>
      ${onEdit && html`<button type="button" class="button plain icon" aria-label="Edit" title="Edit" onClick=${onEdit}><${Icon} name="edit" /></button>`}
      ${asked?.from > 0 && html`<button type="button" class="button plain icon" aria-label="Again" title="Answer again" onClick=${() => sayInBranch(asked, asked.text).catch((error) => (problem.value = error))}><${Icon} name="again" /></button>`}
    </div>`;
}

/** A message that the service has not taken yet. */
function Letter({ letter, state }) {
  const again = () => deliver(letter).catch(() => {});
  return html`
    <div class=${`item person letter ${state || "sending"}`}>
      ${letter.pictures.length > 0 && html`<p class="quiet small">${letter.pictures.length === 1 ? "1 picture" : `${letter.pictures.length} pictures`}</p>`}
      <${Said} text=${letter.text} />
      ${state === "failed" && html`
        <p class="small unsent" role="alert">Not sent. ${letter.error && refusalText(letter.error)}</p>
        <p class="choices"><button type="button" class="button small" onClick=${again}>Try again</button><button type="button" class="button plain small" onClick=${() => dropLetter(letter)}>Remove</button></p>`}
    </div>`;
}

/** What did not work, in words for people, with what it is found by in the journal. */
function Failure({ item }) {
  version.value;
  const held = conversation.value, isLast = held.items[held.items.length - 1] === item && !held.busy && !unsent().length;
  const asked = isLast && held.items.findLast((each) => each.kind === "person" && each.text);
  return html`
    <div class="item failure">
      <p><strong>${item.text}</strong></p>
      ${asked && html`<button type="button" class="button small" onClick=${() => sayAgain(asked).catch(() => {})}>Try again</button>`}
      <p class="small quiet">Reference ${place.value.run}-${item.n}</p>
      <${Cause} text=${item.cause} help=${item.help} />
    </div>`;
}

/** Why, as admins need to know it. */
export const Cause = ({ text, help }) => (user.value?.admin && text ? html`<details class="small cause"><summary>Cause (for admins)</summary><p><${Words} text=${text} /></p>${help && html`<p class="quiet"><${Words} text=${help} /></p>`}</details>` : null);

/** A message of the person, with the files that came with it. */
function Said({ text: all }) {
  const { text, names } = withoutFiles(all);
  return html`
    ${text && html`<div class="bubble"><span class="only-heard">You: </span><div dir="auto">${text}</div></div>`}
    ${names.length > 0 && html`<p class="given-files">${names.map((name) => html`<span class="pill"><${Icon} name="file" />${name}</span>`)}</p>`}`;
}

const pictureOf = (image) => `data:${/^image\/(png|jpeg|gif|webp)$/.test(image.mimeType || image.media_type) ? image.mimeType || image.media_type : "image/png"};base64,${image.data}`;

/** What was done, on one line; the steps on request. */
function Work({ item }) {
  const isRunning = item.steps.some((step) => step.state === "running");
  const others = item.steps.filter((step) => step.agent && step.state === "running");
  const seconds = (item.ended ?? 0) - item.began - item.waited;
  return html`
    <details class=${`item work ${isRunning ? "running" : ""}`}>
      <summary><span class="mark" aria-hidden="true"></span><span dir="auto">${summary(item.steps)}${!isRunning && seconds >= 1 ? ` · ${duration(seconds)}` : ""}${isRunning && html`<${Clock} since=${item.began} />`}</span></summary>
      <ul>${item.steps.map((step) => html`<li class=${step.state}><${Step} step=${step} state=${step.state} /></li>`)}</ul>
    </details>
    ${others.length > 1 && html`<p class="pills" aria-hidden="true">${others.map((step) => html`<span class="pill">${spoken(step.agent)}</span>`)}</p>`}`;
}

/** A step; what it did is behind a click. */
function Step({ step, state }) {
  const [isOpen, setOpen] = useState(false);
  const details = stepDetails(step), seconds = state === "running" ? 0 : (step.ended ?? step.began) - step.began - step.waited;
  const line = html`<span>${step.one}</span>${step.about && html` <code>${step.about}</code>`}${step.share !== undefined && step.share !== null && state === "running" && html` <progress value=${step.share} aria-label="how far it is" />`}
    ${" "}<span class="quiet small">${[seconds >= 1 && duration(seconds), step.waited >= 1 && `waited for you ${duration(step.waited)}`].filter(Boolean).join(", ")}</span> <span class="how">${STATES[state]}</span>`;
  if (!details) return line;
  return html`
    <details class="step" onToggle=${(event) => setOpen(event.target.open)}><summary>${line}</summary>
      ${isOpen && html`
      ${details.command && html`<pre class="exact" dir="ltr">${details.command}</pre>`}
      ${details.diff && html`<${Diff} text=${details.diff} />`}
      ${details.output && html`<${Output} text=${details.output} />`}
      ${details.exit !== null && html`<p class="small">Exit code ${details.exit}</p>`}
      ${details.value !== null && html`<${Value} value=${details.value} />`}`}
    </details>`;
}

const MAX_LINES = 20;

/** The first lines of an output; all on request. */
function Output({ text }) {
  const [isWhole, setWhole] = useState(false);
  const lines = text.split("\n");
  return html`
    <pre class="exact output" dir="ltr" tabindex="0" role="region" aria-label="Output">${isWhole ? text : lines.slice(0, MAX_LINES).join("\n")}</pre>
    ${lines.length > MAX_LINES && html`<button type="button" class="button small" onClick=${() => setWhole(!isWhole)}>${isWhole ? "Show less" : `Show all ${lines.length} lines`}</button>`}`;
}

const STATES = { running: "", done: "", failed: "did not work", left: "was left" };

function Clock({ since }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Date.now() / 1000 - since;
  return seconds >= 2 && seconds < 86_400 ? ` · ${duration(seconds)}` : "";
}

/** That somebody thinks, where nothing else shows that something goes on. */
function Now({ held }) {
  if (!held.busy || held.requests.length || held.growing.size) return null;
  const text = held.isPaused ? "Paused" : held.slow || (held.thinking ? "Thinking" : held.open.size ? "" : "Working");
  return text && html`<p class="item now quiet"><span class="dots" aria-hidden="true"><i></i><i></i><i></i></span>${text}</p>`;
}

const MOST_ROWS = 200;

/** Data for people: a table of an object or of several, else words. */
export function Value({ value }) {
  if (value === null || value === undefined) return html`<span class="quiet">nothing</span>`;
  if (typeof value !== "object") return html`<span class="text" dir="auto">${typeof value === "boolean" ? (value ? "yes" : "no") : String(value)}</span>`;
  if (Array.isArray(value)) {
    const rows = value.slice(0, MOST_ROWS), rest = value.length - rows.length;
    return html`<ul class="values">${rows.map((each) => html`<li><${Value} value=${each} /></li>`)}${rest > 0 && html`<li class="quiet">and ${rest} more</li>`}</ul>`;
  }
  return html`<dl class="values">${Object.entries(value).slice(0, MOST_ROWS).map(([name, each]) => html`<div><dt>${spoken(name)}</dt><dd><${Value} value=${each} /></dd></div>`)}</dl>`;
}

/** For screen readers: sentences once they are finished, and nothing of those that are being written. */
function Heard({ held }) {
  const region = useRef(null), told = useRef(null), rest = useRef(0);
  if (told.current?.held !== held) told.current = { held, lengths: new Map(), isFirst: true };
  useEffect(() => {
    const { lengths, isFirst } = told.current;
    const news = [];
    for (const item of held.items.slice(-20)) {
      if (item.kind !== "answer" && item.kind !== "failure" && item.kind !== "note") continue;
      const known = lengths.get(item.key) || 0;
      const finished = item.isGrowing ? finishedLength(item.text) : item.text.length;
      if (finished > known) news.push(plainText(item.text.slice(known, finished)));
      lengths.set(item.key, Math.max(known, finished));
    }
    told.current.isFirst = false;
    if (isFirst || !news.length) return;
    const line = document.createElement("p");
    line.textContent = news.join(" ");
    region.current.append(line);
    clearTimeout(rest.current);
    rest.current = setTimeout(() => region.current?.replaceChildren(), 10_000);
  });
  return html`<div ref=${region} class="only-heard" role="log" aria-live="polite" aria-label="What is said"></div>`;
}
