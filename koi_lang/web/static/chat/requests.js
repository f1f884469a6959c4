// What the person is asked: questions, permissions, plans. They stand above the input and never behind a scroll.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { Icon } from "./icons.js";
import { diffClass, Markdown, plainText } from "./markdown.js";
import { asAnswer, fieldsOf, problemOf } from "./forms.js";
import { editsFor } from "./plans.js";
import { answer, approve, conversation, decidePlan, fillForm, problem, version } from "./store.js";
import { duration, spoken } from "./words.js";

// A card that comes up under a finger that is about to press something else is not pressed.
const SETTLE_MS = 400;

/** The request that is open longest; how many wait behind it is said. */
export function Requests() {
  version.value;
  const open = (conversation.value?.requests || []).filter((each) => !each.isBeingAnswered);
  const request = open[0], card = useRef(null);
  // Nobody who writes is interrupted.
  useEffect(() => {
    const { activeElement: here } = document;
    if (card.current && (here === document.body || (here?.id === "message" && !here.value))) (card.current.querySelector("[data-first]") || card.current).focus({ preventScroll: true });
  }, [request?.id]);
  return html`
    <div class="only-heard" role="status" aria-live="assertive">${request ? toldOf(request) : ""}</div>
    ${request && html`
      <section class="request card" aria-label="You are asked" tabindex="-1" ref=${card}>
        ${open.length > 1 && html`<p class="quiet small">1 of ${open.length}</p>`}
        ${request.form ? html`<${Form} key=${JSON.stringify(request.form.schema)} request=${request} />` : request.plan ? html`<${Plan} key=${request.id} request=${request} />` : request.type === "question" ? html`<${Question} key=${request.id} request=${request} />` : html`<${Approval} key=${request.id} request=${request} />`}
      </section>`}`;
}

const toldOf = (request) =>
  request.form ? `You are asked to fill in a form: ${plainText(request.form.title)}` : request.plan ? "A plan is proposed." : request.type === "question" ? `You are asked: ${plainText(request.question)}` : `${request.agent ? spoken(request.agent) : "The program"} wants to ${request.what.replaceAll("`", "")}. Do you allow it?`;

/** Buttons that take a press once, and not at once. */
function usePress() {
  const [isReady, setReady] = useState(false);
  const [isSent, setSent] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setReady(true), SETTLE_MS);
    return () => clearTimeout(timer);
  }, []);
  const press = (send, isAllowed = true) => async () => {
    if (!isReady || isSent || !isAllowed) return;
    setSent(true);
    try {
      await send();
      // The card goes, and with it what has the focus.
      if (matchMedia("(pointer: fine)").matches) document.getElementById("message")?.focus({ preventScroll: true });
    } catch (error) {
      setSent(false);
      if (error.code !== "unknown_request") problem.value = error;
    }
  };
  return [press, !isReady || isSent];
}

function Question({ request }) {
  const [press, isHeld] = usePress();
  const [text, setText] = useState("");
  const options = request.options || [];
  const send = press(() => answer(request, text));
  const field = { class: "field", dir: "auto", value: text, autocomplete: "off", onInput: (event) => setText(event.target.value) };
  return html`
    <div class="request-head"><${Icon} name="ask" /><div class="request-text"><${Markdown} text=${request.question} /></div></div>
    ${options.length > 0 && html`<div class="choices">${options.map((option) => html`<button type="button" class="button" dir="auto" aria-disabled=${isHeld} onClick=${press(() => answer(request, option))}>${option}</button>`)}</div>`}
    <form class="answer-line" onSubmit=${(event) => (event.preventDefault(), send())}>
      <label class="only-heard" for=${`answer-${request.id}`}>${options.length ? "Or in your own words" : "Your answer"}</label>
      <input id=${`answer-${request.id}`} type=${request.secret ? "password" : "text"} placeholder=${options.length ? "Or in your own words" : "Your answer"} data-first=${!options.length && matchMedia("(pointer: fine)").matches ? "" : undefined} ...${field} />
      <button class="button ${options.length ? "" : "main"}" aria-disabled=${isHeld || (!text && options.length > 0)}>Answer</button>
    </form>
    <${Left} request=${request} />`;
}

/** A whole form, checked before it is sent. */
function Form({ request }) {
  const { title, schema, field } = request.form, fields = fieldsOf(schema);
  const [press, isHeld] = usePress();
  const [values, setValues] = useState(() => Object.fromEntries(fields.map((each) => [each.name, each.initial])));
  const [wrong, setWrong] = useState(() => (field === fields[0]?.name ? {} : { [field]: "This was not accepted. Please look at it again." }));
  const form = useRef(null);
  const change = (name, value) => (setValues({ ...values, [name]: value }), setWrong({ ...wrong, [name]: "" }));
  const send = (event) => {
    event.preventDefault();
    const native = (name) => form.current.elements[`field-${name}`]?.validationMessage || "";
    const found = fields.map((each) => [each.name, problemOf(each, values[each.name], native(each.name))]).filter(([, problem]) => problem);
    setWrong(Object.fromEntries(found));
    if (found.length) form.current.querySelector(`[data-field="${CSS.escape(found[0][0])}"] :is(input, select, textarea)`)?.focus();
    else press(() => fillForm(request, Object.fromEntries(fields.map(({ name }) => [name, asAnswer(values[name])]))))();
  };
  return html`
    <div class="request-head"><${Icon} name="list" /><div class="request-text"><${Markdown} text=${title} /></div></div>
    <form id="form" class="request-body form" ref=${form} onSubmit=${send} novalidate>
      ${fields.map((each) => html`<${Field} key=${each.name} field=${each} value=${values[each.name]} problem=${wrong[each.name]} onChange=${(value) => change(each.name, value)} />`)}
    </form>
    <div class="choices"><button form="form" class="button main" aria-disabled=${isHeld}>Send</button></div>
    <${Left} request=${request} />`;
}

function Field({ field, value, problem, onChange }) {
  const { name, title, hint, kind, options, isRequired, bounds } = field, id = `field-${name}`;
  const about = { "aria-invalid": problem ? "true" : undefined, "aria-describedby": `${id}-about` };
  const told = html`<span id=${`${id}-about`} class="small"><span class="quiet" dir="auto">${hint}</span>${problem && html`<span class="wrong" role="alert">${problem}</span>`}</span>`;
  const label = html`<span dir="auto">${title}</span>${!isRequired && kind !== "boolean" && html`<span class="quiet small"> optional</span>`}`;
  if (kind === "boolean") return html`<div data-field=${name}><label class="tick"><input type="checkbox" checked=${value} onChange=${(event) => onChange(event.target.checked)} ...${about} />${label}</label>${told}</div>`;
  if (kind === "choice" || kind === "several") {
    const isChosen = (option) => (kind === "several" ? value.includes(option) : value === option);
    const choose = (option) => onChange(kind === "choice" ? option : isChosen(option) ? value.filter((each) => each !== option) : [...value, option]);
    return html`<fieldset data-field=${name} ...${about}><legend>${label}</legend><div class="choices">${options.map((option) => html`
      <label class="button option"><input type=${kind === "several" ? "checkbox" : "radio"} name=${`choice-${name}`} checked=${isChosen(option.value)} onChange=${() => choose(option.value)} /><span dir="auto">${option.title}</span></label>`)}</div>${told}</fieldset>`;
  }
  const common = { id, name: id, class: "field", dir: "auto", value, required: isRequired && kind !== "select", onInput: (event) => onChange(event.target.value), ...about, ...bounds };
  return html`<div data-field=${name}><label for=${id}>${label}</label>
    ${kind === "select" ? html`<select ...${common}><option value="">Choose</option>${options.map((option) => html`<option value=${option.value}>${option.title}</option>`)}</select>`
      : kind === "long" ? html`<textarea rows="3" ...${common}></textarea>` : html`<input type=${kind} autocomplete="off" ...${common} />`}${told}</div>`;
}

function Approval({ request }) {
  const [press, isHeld] = usePress();
  const [isRefusing, setRefusing] = useState(false);
  const [reason, setReason] = useState("");
  const deed = partsOf(request.what);
  const [isRead, body, onScroll] = useRead();
  const isShut = isHeld || !isRead;
  const chain = (request.chain || []).map((name) => spoken(name.split(".")[0]));
  return html`
    <div class="request-head"><${Icon} name="hand" /><h2 dir="auto">${request.agent ? spoken(request.agent) : "The program"} wants to ${deed.before}</h2></div>
    <div class="request-body" tabindex="0" role="region" aria-label="What is asked for" ref=${body} onScroll=${onScroll}>
      ${deed.exact && html`<pre class="exact" dir="ltr">${deed.exact}</pre>`}
      ${deed.behind && html`<p>${deed.behind}</p>`}
      ${request.detail && html`<p class="detail" dir="auto">${request.detail}</p>`}
      ${request.preview && html`<${Diff} text=${request.preview} />`}
      ${chain.length > 1 && html`<p class="quiet small">Asked for by ${chain.join(" → ")}</p>`}
    </div>
    ${isRefusing
      ? html`<form class="answer-line" onSubmit=${(event) => (event.preventDefault(), press(() => approve(request, "no", reason.trim()))())}>
          <label class="only-heard" for="reason">Why not, or what instead</label>
          <input id="reason" class="field" dir="auto" placeholder="Why not, or what instead? (may be empty)" value=${reason} onInput=${(event) => setReason(event.target.value)} ref=${(element) => element?.dataset.seen || (element && ((element.dataset.seen = "1"), element.focus()))} />
          <button class="button main">Do not allow</button>
          <button type="button" class="button plain" onClick=${() => setRefusing(false)}>Back</button>
        </form>`
      : html`<div class="choices">
          <button type="button" class="button main" aria-disabled=${isShut} onClick=${press(() => approve(request, "yes"), isRead)}>Allow once</button>
          ${request.always && html`<button type="button" class="button" aria-disabled=${isShut} onClick=${press(() => approve(request, "always"), isRead)}>Always allow ${request.always === `\`${deed.exact}\`` ? "exactly this" : html`<${Words} text=${request.always} />`}</button>`}
          <button type="button" class="button" aria-disabled=${isHeld} onClick=${() => setRefusing(true)}>Do not allow</button>
        </div>
        ${!isRead && html`<p class="small unread">There is more above: read to the end to allow it.</p>`}`}
    <${Left} request=${request} />`;
}

/** Whether somebody has come to the end of what is asked for: nothing is allowed that was not on the screen. */
function useRead() {
  const body = useRef(null);
  const [isRead, setRead] = useState(false);
  const look = () => {
    const { scrollHeight, scrollTop, clientHeight } = body.current;
    if (scrollHeight - scrollTop - clientHeight < 8) setRead(true);
  };
  useEffect(look, []);
  return [isRead, body, look];
}

/** What is to be done: words before and behind, and what stands between backticks in full, as it would be carried out. */
function partsOf(what) {
  const found = /^([^`]*)`([\s\S]+)`([^`]*)$/.exec(what);
  return found ? { before: found[1].trim(), exact: found[2], behind: found[3].trim() } : { before: what, exact: "", behind: "" };
}

/** Words in which what stands between backticks is code. */
export function Words({ text }) {
  const parts = String(text || "").split(/`([^`]+)`/);
  return html`<span>${parts.map((part, at) => (at % 2 ? html`<code>${part}</code>` : part))}</span>`;
}

/** A unified diff with its lines coloured. */
export function Diff({ text }) {
  return html`<pre class="diff" tabindex="0" role="region" aria-label="what would change">${text.replace(/\n$/, "").split("\n").map((line) => html`<span class=${diffClass(line)}>${line || " "}</span>`)}</pre>`;
}

function Plan({ request }) {
  const { head, steps } = request.plan;
  const [press, isHeld] = usePress();
  const [wanted, setWanted] = useState(() => steps.map((step, at) => ({ from: at, text: step.text, touches: step.touches })));
  const [isRefusing, setRefusing] = useState(false);
  const [reason, setReason] = useState("");
  const last = useRef(null);
  const change = (at, text) => setWanted(wanted.map((step, n) => (n === at ? { ...step, text } : step)));
  const edits = editsFor(steps, wanted), isChanged = edits.length > 1, isEmpty = !wanted.some((step) => step.text.trim());
  return html`
    <div class="request-head"><${Icon} name="list" /><div class="request-text"><${Markdown} text=${head.replace(/^`(\w+)`/, (_, name) => `**${spoken(name)}**`)} /></div></div>
    <ol class="request-body plan" aria-label="The steps">
      ${wanted.map((step, at) => html`<li key=${step.from ?? `new-${at}`}>
        <textarea rows="1" class="field" dir="auto" aria-label=${`Step ${at + 1}`} maxlength="300" value=${step.text} onInput=${(event) => change(at, event.target.value.replace(/\n/g, " "))} ref=${at === wanted.length - 1 ? last : null}></textarea>
        <button type="button" class="button plain icon" aria-label=${`Leave step ${at + 1} out`} onClick=${() => setWanted(wanted.filter((_, n) => n !== at))}><${Icon} name="close" /></button>
        ${step.touches?.length > 0 && html`<p class="quiet small">touches ${step.touches.join(", ")}</p>`}
      </li>`)}
    </ol>
    ${isRefusing
      ? html`<form class="answer-line" onSubmit=${(event) => (event.preventDefault(), press(() => answer(request, refusal(reason)))())}>
          <label class="only-heard" for="reason">What is wrong with it</label>
          <input id="reason" class="field" dir="auto" placeholder="What is wrong with it?" value=${reason} onInput=${(event) => setReason(event.target.value)} />
          <button class="button main" aria-disabled=${isHeld || !reason.trim()}>Refuse</button>
          <button type="button" class="button plain" onClick=${() => setRefusing(false)}>Back</button>
        </form>`
      : html`<div class="choices">
          <button type="button" class="button main" aria-disabled=${isHeld || isEmpty} onClick=${press(() => !isEmpty && decidePlan(request, edits))}>${isChanged ? "Accept with my changes" : "Accept the plan"}</button>
          <button type="button" class="button" onClick=${() => setWanted([...wanted, { from: null, text: "" }])}><${Icon} name="plus" />Add a step</button>
          <button type="button" class="button" onClick=${() => setRefusing(true)}>Refuse</button>
        </div>`}
    <${Left} request=${request} />`;
}

// What would be read as a change of the plan, or as a decision about it.
const DECIDING = /^\s*(?:\d+\s*[:=]|-\s*\d|\+|(?:accept|edit|yes|y|no|n|refuse)\s*$)/i;
const refusal = (reason) => (DECIDING.test(reason) ? `No. ${reason.trim()}` : reason.trim());

/** How long the request stays open, once that is not long any more. */
function Left({ request }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  const left = request.since + (request.timeout_s ?? Infinity) - Date.now() / 1000;
  if (!(left < 300)) return null;
  return html`<p class="quiet small left">${left > 0 ? `Open for ${duration(left)}; then ${request.type === "question" ? "it goes on without an answer" : "nothing is allowed"}.` : "The time is over."}</p>`;
}
