// What a run has told, as a conversation: messages to items on the page. Pure: the same messages give the same items.

import { planIn } from "./plans.js";
import { Cast, deed, failureText } from "./words.js";

const IMAGES = "images";
const RETURNED = new Set(["return", "call_llm"]);

/** The text that a call was given, and its images; without a text what it was called with. */
export function saidIn(args) {
  const known = args !== null && typeof args === "object" && !Array.isArray(args) ? args : { message: args };
  const values = Object.entries(known).filter(([name]) => name !== IMAGES).map(([, value]) => value);
  const images = Array.isArray(known[IMAGES]) ? known[IMAGES].filter((each) => each && each.data) : [];
  const text = values.length === 1 && typeof values[0] === "string" ? values[0] : "";
  return { text, images, fields: text || !values.some((value) => value !== undefined && value !== null) ? null : known };
}

/** The text that a call has given, alone or as the only field; null where it gave something else. */
export function textIn(result) {
  const isObject = result !== null && typeof result === "object" && !Array.isArray(result);
  const values = isObject ? Object.values(result) : [result];
  return values.length === 1 && typeof values[0] === "string" ? values[0] : null;
}

const isBelow = (path, above) => above.length <= path.length && above.every((part, at) => part === path[at]);
const keyOf = (path) => path.join("/");
// What a branch cannot go on from.
const NO_POINTS = new Set(["run_ended", "resumed"]);
const AT_WORK = new Set(["working", "waiting", "paused"]);

/**
 * A conversation that grows.
 *
 * `items`: what stands on the page, in order; each has a `key`, and a `version` that grows when it changes.
 * `requests`: questions and approvals that are open. `waiting`: messages that will be heard later.
 * `changed`: how the program has changed since, where the conversation cannot go on with it.
 */
export class Conversation {
  constructor(cast = new Cast()) {
    Object.assign(this, { cast, items: [], requests: [], waiting: [], growing: new Map(), open: new Map() });
    Object.assign(this, { state: "", isCalled: false, last: 0, thinking: false, slow: "", name: "", made: 0 });
    Object.assign(this, { hasPrinted: false, askedAt: new Map(), writer: "", proposed: [], changed: "", modelError: "" });
    Object.assign(this, { isRehearsal: false, waitsSince: null, calls: 0, point: 0, before: 0 });
  }

  /** Whether something goes on; as the service says it, where it does. */
  get busy() {
    return this.state ? AT_WORK.has(this.state) : this.isCalled;
  }

  /** Whether something had been begun that nobody goes on with, because the service was ended. */
  get isInterrupted() {
    return this.isCalled && !this.busy && !this.changed;
  }

  /** Take a message in. */
  take(message) {
    if (message.type === "event") {
      if (message.n !== undefined && message.n <= this.last) return;
      if (message.n !== undefined) this.last = message.n;
      this.before = this.point;
      if (message.n !== undefined && !NO_POINTS.has(message.event.type)) this.point = message.n;
      this.happened(message.event, message.so_far === true || message.event.so_far === true);
    } else if (message.type === "rpc_ready") this.ready(message);
    else if (message.type === "question" || message.type === "approval_request") this.ask(message);
    else if (message.type === "request_closed") this.close(message.id, message.reason);
    else if (message.type === "state") this.become(message.state);
    else if (message.type === "session_failed" && message.code === "program_changed") this.changed = message.error;
    else if (message.type === "session_failed") this.fail(message.error, message.help);
  }

  // ---------------------------------------------------------- what the session says of itself

  /** What is open is told anew behind this. */
  ready({ state, title, changed }) {
    this.name = this.name || title || "";
    this.changed = changed || "";
    this.requests = [];
    if (typeof state === "string") this.state = state;
  }

  become(state) {
    this.state = state;
    if (!this.busy) this.settle();
  }

  ask(request) {
    const known = this.requests.findIndex((each) => each.id === request.id);
    const seconds = this.askedAt.get(request.question ?? request.what);
    const made = { ...request, plan: request.type === "question" ? planIn(request, this.proposed) : null, since: seconds ?? Date.now() / 1000 };
    if (known < 0) this.requests = [...this.requests, made];
    else this.requests = this.requests.map((each, at) => (at === known ? made : each));
  }

  close(id, reason) {
    const closed = this.requests.find((each) => each.id === id);
    this.requests = this.requests.filter((each) => each.id !== id);
    if (closed && reason === "timeout") this.note("Nobody answered in time, so nothing was allowed.");
  }

  // ---------------------------------------------------------- what has happened

  happened(event, isSoFar) {
    const { type, path = [] } = event;
    const handle = this[`on_${type}`];
    if (handle) handle.call(this, event, path, isSoFar);
  }

  on_call_started(event, path) {
    this.isCalled = true;
    this.hasPrinted = false;
    this.cut = null;
    this.work = null;
    const [agent, name] = String(event.name || "").split(".");
    const said = saidIn(event.args);
    this.add("person", { ...said, about: this.cast.doing(agent, name), ts: event.ts, call: ++this.calls, from: this.before, handler: event.name });
    this.writer = agent;
    this.thinking = true;
  }

  on_call_ended(event) {
    this.isCalled = false;
    if (event.aborted) this.keepHalf();
    const text = event.ok ? textIn(event.result) : null;
    const kept = [...this.growing.values()].find((item) => RETURNED.has(item.action));
    const isThing = event.result !== null && typeof event.result === "object" && Object.keys(event.result).length > 0;
    const isData = event.ok && !this.hasPrinted && text === null && isThing;
    if (event.ok && !this.hasPrinted && text) this.finish(kept, text);
    this.settle((text && !this.hasPrinted) || (isData && kept?.kind === "result") ? kept : undefined);
    if (isData) this.complete(kept?.kind === "result" ? kept : this.add("result", {}), { value: event.result });
    if (event.aborted) this.add("note", { text: "Stopped." });
    else if (!event.ok) this.fail(event.error, event.help, event.timed_out);
    this.requests = [];
  }

  /** Keep the text that a model was writing when it was stopped. */
  keepHalf() {
    const halves = [...this.growing.values()].filter((item) => item.text?.trim());
    for (const item of halves) this.finish(item, item.text);
    const { action, text, path } = this.cut || {};
    const isSaid = action === "print" || (action === "return" && path.length <= 2 && !this.hasPrinted);
    if (!halves.length && isSaid && text.trim() && this.items.findLast((item) => item.kind === "answer")?.text !== text) this.finish(null, text);
  }

  on_handler_started(event, path) {
    if (path.length > 1) this.begin(path, { one: this.cast.doing(event.agent, event.event), agent: event.agent }, event.ts);
    else if (path.length) this.writer = event.agent;
  }

  on_handler_ended(event, path) {
    this.drop((item) => isBelow(item.path, path) && !(path.length === 1 && RETURNED.has(item.action)));
    this.end(path, true, event.ts, event.result);
  }

  on_handler_failed(event, path) {
    this.drop((item) => isBelow(item.path, path));
    this.end(path, false, event.ts);
  }

  on_action_started(event, path) {
    if (event.intent === "propose_plan") this.proposed = event.fields?.steps || [];
    const done = deed(event.intent, event.fields || {});
    if (done) this.begin(path, { ...done, fields: event.fields }, event.ts);
  }

  on_action_ended(event, path) {
    this.end(path, true, event.ts, event.result);
  }

  on_action_failed(event, path) {
    this.end(path, false, event.ts);
  }

  on_effect_started(event, path) {
    this.on_action_started(event, path);
  }

  on_effect_ended(event, path) {
    this.end(path, true, event.ts, event.result);
  }

  on_effect_failed(event, path) {
    this.end(path, false, event.ts);
  }

  on_mcp_progress(event, path) {
    const step = this.open.get(keyOf(path));
    if (!step) return;
    step.share = event.total ? Math.min(1, event.progress / event.total) : null;
    if (event.message) step.about = event.message;
    this.touch(step.item);
  }

  on_model_asked(event, path) {
    this.drop((item) => keyOf(item.path.slice(0, -1)) === keyOf(path.slice(0, -1)));
    this.thinking = true;
    this.slow = "";
    if (event.type === "model_asked") this.isRehearsal = event.model === "rehearsal";
  }

  on_model_failed(event) {
    this.modelError = event.class || "ProviderError";
  }

  on_answer_discarded(event, path) {
    this.on_model_asked(event, path);
  }

  on_model_answered(event, path) {
    this.modelError = "";
    this.cut = event.written ? { ...event.written, path } : null;
    this.thinking = false;
    this.slow = "";
    for (const item of this.growing.values()) {
      if (keyOf(item.path) !== keyOf(path)) continue;
      item.isGrowing = false;
      this.touch(item);
    }
  }

  on_retry_started(event) {
    this.slow = "There was no answer, so it is tried again.";
  }

  on_output_delta(event, path, isSoFar) {
    const isForAnother = path.length > 2 && RETURNED.has(event.action);
    const isNotSaid = event.action === "return" && (this.hasPrinted || this.growing.has(keyOf(path)));
    if (event.action === "prompt_user" || isForAnother || isNotSaid) return;
    const key = `${keyOf(path)}#${event.number}`;
    let item = this.growing.get(key);
    if (!item) {
      item = this.add("answer", { text: "", agent: event.agent, isGrowing: true, path, action: event.action });
      this.growing.set(key, item);
    }
    item.isGrowing = true;
    item.text = isSoFar ? event.text : item.text + event.text;
    this.thinking = false;
    this.touch(item);
  }

  /** The part of a result of a declared type that has arrived; its texts stand in it, and not by themselves. */
  on_partial_result(event, path) {
    if (path.length > 2 || this.hasPrinted) return;
    let item = this.growing.get(keyOf(path));
    if (!item) {
      this.drop((each) => each.action === "return");
      item = this.add("result", { path, action: "return", isGrowing: true });
      this.growing.set(keyOf(path), item);
    }
    item.value = event.value;
    this.thinking = false;
    this.touch(item);
  }

  on_printed(event, path) {
    this.hasPrinted = true;
    const item = this.grownFor(path);
    const who = path.length > 1 ? path.filter((part) => /^[A-Z][^:]*\.\w+#/.test(part)).pop() : path[0];
    this.finish(item, event.message, (who || "").split(".")[0]);
  }

  on_asked(event, path) {
    this.askedAt.set(event.question, event.ts);
    this.waitsSince = event.ts;
    this.drop((item) => item === this.grownFor(path));
    if (!planIn(event)) this.add("asked", { text: event.question, answer: null, ts: event.ts });
  }

  on_answered(event, path) {
    this.addWait(path, event.ts);
    this.requests = this.requests.filter((each) => each.question !== event.question);
    const item = this.items.findLast((each) => each.kind === "asked" && each.answer === null && each.text === event.question);
    if (!item) return;
    item.answer = event.answer;
    this.touch(item);
    this.joinFields(item);
  }

  /** Put the fields of a form, which are asked for one after the other, into one item. */
  joinFields(item) {
    const [head, field, ...more] = item.text.split("\n"), before = this.items[this.items.indexOf(item) - 1];
    if (!field || more.length) return;
    const row = [field.replace(/(: .*)? \([^()]*\)$/, ""), item.answer];
    if (before?.head === head) {
      before.rows = [...before.rows, row];
      this.items = this.items.filter((each) => each !== item);
      this.touch(before);
    } else Object.assign(item, { head, rows: [row] });
  }

  on_approval_requested(event) {
    this.askedAt.set(event.what, event.ts);
    this.waitsSince = event.ts;
  }

  /** Tell the time that the person took apart from that of the work. */
  addWait(path, ts) {
    const seconds = this.waitsSince === null ? 0 : Math.max(0, ts - this.waitsSince);
    this.waitsSince = null;
    for (const step of this.open.values()) if (isBelow(path, step.path)) step.waited += seconds;
    const item = this.work || this.items.findLast((each) => each.kind === "work");
    if (item && item.ended === null) item.waited += seconds;
  }

  on_approval_given(event, path) {
    this.addWait(path, event.ts);
    const open = this.requests.find((each) => each.type === "approval_request" && each.what === event.what);
    if (open) this.requests = this.requests.filter((each) => each !== open);
    this.work = null;
    this.add("allowed", { what: event.what, answer: event.answer, reason: event.reason || "" });
  }

  on_steered(event) {
    this.waiting = this.waiting.filter((each) => each.id !== event.id);
    if (event.from && event.from !== "person") return;
    this.work = null;
    this.add("person", { text: event.text, images: event.images || [], fields: null, wasHeard: true, ts: event.ts });
  }

  on_queue_update(event) {
    this.waiting = [...(event.steering || []), ...(event.follow_up || [])];
  }

  on_plan_decided(event) {
    this.work = null;
    this.add("plan", { answer: event.answer, steps: event.steps || [], done: 0, words: event.words || "" });
  }

  on_plan_step_finished(event) {
    const plan = this.items.findLast((item) => item.kind === "plan");
    if (!plan) return;
    plan.done = Math.max(plan.done, event.step);
    this.touch(plan);
  }

  on_session_named(event) {
    this.name = event.name;
  }

  on_paused() {
    this.isPaused = true;
  }

  on_continued() {
    this.isPaused = false;
  }

  on_run_ended() {
    this.settle();
  }

  // ---------------------------------------------------------- items

  add(kind, about) {
    const item = { kind, key: `${kind}-${++this.made}`, version: 0, ...about };
    if (kind !== "work") this.work = null;
    this.items.push(item);
    return item;
  }

  touch(item) {
    item.version += 1;
  }

  note(text) {
    this.add("note", { text });
  }

  /** What went wrong in words for people, and the cause for admins. */
  fail(error, help, isLate = false) {
    this.add("failure", { text: failureText(this.modelError, isLate), cause: String(error || ""), help: help || "", n: this.last });
    this.modelError = "";
  }

  /** The text that a model was writing at a place and that has now been said. */
  grownFor(path) {
    return [...this.growing.values()].find((item) => isBelow(path, item.path.slice(0, -1)));
  }

  finish(item, text, agent = "") {
    if (!item) {
      this.add("answer", { text, agent: agent || this.writer, isGrowing: false });
      return;
    }
    this.complete(item, { kind: "answer", agent: item.agent || this.writer, text });
  }

  /** An item grows no more. */
  complete(item, about) {
    Object.assign(item, about, { isGrowing: false });
    this.growing.forEach((each, key) => each === item && this.growing.delete(key));
    this.touch(item);
  }

  /** Take texts away that will not be said. */
  drop(isGone) {
    for (const [key, item] of [...this.growing]) {
      if (!isGone(item)) continue;
      this.growing.delete(key);
      this.items = this.items.filter((each) => each !== item);
    }
  }

  /** Nothing goes on any more. */
  settle(kept) {
    this.drop((item) => item !== kept);
    for (const step of this.open.values()) this.finishStep(step, step.state === "running" ? "left" : step.state);
    this.open.clear();
    this.thinking = false;
    this.slow = "";
  }

  // ---------------------------------------------------------- steps of the work

  begin(path, done, ts) {
    if (!this.work) this.work = this.add("work", { steps: [], began: ts, ended: null, waited: 0 });
    const step = { several: (n) => `${done.one} (${n} times)`, ...done, path, state: "running", began: ts, ended: null, waited: 0, item: this.work };
    this.work.steps.push(step);
    this.work.ended = null;
    this.open.set(keyOf(path), step);
    this.touch(this.work);
  }

  end(path, isOk, ts, result) {
    const step = this.open.get(keyOf(path));
    if (!step) return;
    this.open.delete(keyOf(path));
    step.ended = ts;
    if (result !== undefined) step.result = result;
    this.finishStep(step, isOk ? "done" : "failed");
  }

  finishStep(step, state) {
    step.state = state;
    if (step.item.steps.every((each) => each.state !== "running")) step.item.ended = step.ended ?? step.began;
    this.touch(step.item);
  }
}
