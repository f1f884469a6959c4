// What the page knows: who is signed in, the programs, the runs of the person, and the conversation that is open.

import { command, koi, KoiError, listen, mustSignIn } from "../api.js";
import { batch, signal } from "../vendor/preact.js";
import { Conversation } from "./conversation.js";
import { Cast, grouped, withFiles, withoutFiles } from "./words.js";

export const user = signal(null);
export const programs = signal([]);
export const runs = signal([]);
export const nextRuns = signal(null);
// What the address says: `{run}`, or `{program, handler}` of a conversation that has not begun.
export const place = signal({});
export const conversation = signal(null);
// Grows with every change of the conversation, at most once a frame.
export const version = signal(0);
export const connection = signal("open");
export const problem = signal(null);
export const files = signal([]);

let cast = new Cast(), stream = null, frame = 0;

/** Whom messages can be given to: `{program, agent, event, handler, title, about, examples}`. */
export const targets = () =>
  programs.value.flatMap((program) => (program.chat || []).map((each) => ({ ...each, program: program.name, handler: `${each.agent}.${each.event}` })));

/** Learn who this is and what there is. */
export async function load() {
  const [status, program] = await Promise.all([koi.status(), koi.program()]);
  cast = new Cast(program.programs);
  batch(() => {
    user.value = status;
    programs.value = program.programs;
  });
  await loadRuns();
}

/** The runs of the person, the newest first; with `more` the next page of them. */
export async function loadRuns(more = false) {
  const found = await koi.runs.list({ limit: 30, user: user.value?.user, before: more ? nextRuns.value : "" });
  // An admin sees those of everybody; here are one's own.
  const own = found.runs.filter((run) => !user.value?.user || run.owner === user.value.user);
  const listed = more ? [...runs.value, ...own] : own;
  const old = await Promise.all(pinned.value.filter((id) => !listed.some((run) => run.id === id)).map(pinnedRun));
  batch(() => {
    runs.value = [...new Map([...listed, ...old].filter(Boolean).map((run) => [run.id, run])).values()];
    nextRuns.value = found.next || null;
  });
  await loadFamily();
}

/** A pinned run that is older than those that were listed; one that is gone is pinned no more. */
const pinnedRun = (id) => koi.run(id).get().catch((error) => void (error.status === 404 && pin(id, false)));

/** Follow the address: open its conversation, anew if so wished, or leave the one that is open. */
export function follow(isAnew = false) {
  const words = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  const to = words[0] === "run" ? { run: words[1] } : words[0] === "new" ? { program: words[1], handler: words[2] } : {};
  if (to.run && to.run === place.value.run && !isAnew) return;
  if (!to.run) outbox.value = outbox.value.filter((each) => each.run);
  stream?.close();
  stream = null;
  batch(() => {
    place.value = to;
    conversation.value = to.run ? new Conversation(cast) : null;
    connection.value = "open";
    problem.value = null;
    files.value = [];
    family.value = [];
  });
  if (to.run) open(to.run);
}

export function go(...words) {
  const to = `#/${words.map(encodeURIComponent).join("/")}`;
  if (to === (location.hash || "#/")) follow(true);
  else location.hash = to;
}

function open(run) {
  const held = conversation.value;
  const onMessage = (message) => {
    if (held !== conversation.value) return;
    const wasBusy = held.busy, asked = held.requests.length;
    held.take(message);
    if (message.type === "event") outbox.value = outbox.value.filter((each) => each.run !== run || timesSaid(held, each.text) <= each.before);
    clearTimeout(settling);
    if (!held.busy) settling = setTimeout(() => (held.settle(), show()), QUIET_MS);
    if (message.type === "question") {
      continuePlan(held, message.id);
      continueForm(held, message.id);
    }
    if (wasBusy !== held.busy) goOnOrLeave(run, held);
    if (wasBusy !== held.busy || (asked > 0) !== (held.requests.length > 0)) reloadSoon();
    show();
  };
  const onState = (state, error) => {
    if (held !== conversation.value) return;
    connection.value = state;
    if (error?.status === 404) leaveLost();
    else if (error) problem.value = error;
  };
  stream = listen(run, onMessage, onState, { mayRest: () => !held.busy });
  loadFiles();
  loadFamily();
}

/** Go from a conversation that is gone to where another one begins. */
function leaveLost() {
  window.history.replaceState(null, "", "#/");
  follow(true);
  problem.value = new Error("This conversation is not there any more.");
}

let reloading = 0, settling = 0;
// Where nothing goes on and nothing more is told, what was begun has been left.
const QUIET_MS = 400;

/** Have a session that was interrupted go on where it was: every command wakes it. */
export const goOn = () => command(place.value.run, "get_state");

/** Go on in a new conversation with all that fits the program as it is now, with the same agent. */
export async function goOnInBranch() {
  const { writer } = conversation.value;
  const { id } = await koi.run(place.value.run).branch({});
  await load();
  if (programs.value.some((program) => program.agents?.some((agent) => agent.name === writer))) partners.set(id, writer);
  go("run", id);
}

// Who the next message of a conversation is for, where its last call does not tell.
const partners = new Map();

/** How the program has changed since, where the conversation cannot go on with it. */
export const changeSince = () => conversation.value.changed || (problem.value?.code === "program_changed" ? problem.value.message : "");

/** Have the list of conversations, and of files, be what it is now. */
function reloadSoon() {
  clearTimeout(reloading);
  reloading = setTimeout(() => {
    loadRuns().catch(() => {});
    loadFiles();
  }, 300);
}

/** What was said too late to be heard is the next message. */
function goOnOrLeave(run, held) {
  if (!held.busy && held.waiting.some((each) => mine.has(each.id))) koi.run(run).continue().catch(() => {});
}

/** Have the page drawn anew with the next frame, or soon where it has none because nobody looks at it. */
export function show() {
  if (frame) return;
  const draw = () => {
    cancelAnimationFrame(frame);
    clearTimeout(later);
    frame = 0;
    version.value += 1;
  };
  frame = requestAnimationFrame(draw);
  const later = setTimeout(draw, 250);
}

// Messages that were queued here: if they come too late to be heard, they are the next ones.
const mine = new Set();

// Messages that were written here and are not yet among what the run has told: `{id, run, text, names, images, state, error}`.
export const outbox = signal([]);

/** The messages that are on their way to the place that is open. */
export const unsent = () => outbox.value.filter((each) => each.run === (place.value.run || ""));

/** Whether the conversation is being begun, so that it has no address yet. */
export const isBeginning = () => !place.value.run && unsent().length > 0;

/** Where what somebody has begun to write is kept. */
export const draftKey = (where = place.value) => `koi-draft-${location.pathname}-${JSON.stringify(where)}`;

const changeLetter = (letter, changes) => (outbox.value = outbox.value.map((each) => (each.id === letter.id ? Object.assign(each, changes) : each)));
export const dropLetter = (letter) => (outbox.value = outbox.value.filter((each) => each.id !== letter.id));

/** How often a text stands in a conversation, heard or not yet. */
const timesSaid = (held, text) => held.items.filter((item) => item.kind === "person" && item.text === text).length + held.waiting.filter((each) => each.text === text).length;

/**
 * Give a message to the conversation that is open, or begin one; it stands on the page at once.
 * @param {File[]} added files that come along; pictures are shown to the model, others are put into the session's folder.
 */
export async function say(text, added = []) {
  const pictures = added.filter(isPicture), others = added.filter((file) => !isPicture(file));
  const named = withFiles(text, others.map((file) => file.name)) || "Look at this.";
  conversation.value ??= new Conversation(cast);
  const letter = { id: `${Date.now()}-${Math.random()}`, ...place.value, run: place.value.run || "", text: named, pictures, others, images: [], before: timesSaid(conversation.value, named) };
  outbox.value = [...outbox.value, letter];
  letter.images = await Promise.all(pictures.map(imageOf));
  await deliver(letter);
}

/** Give a message of the conversation once more. */
export const sayAgain = ({ text, images }) => resend(place.value.run, text, images, timesSaid(conversation.value, text));

async function resend(run, text, given, before) {
  const images = given.map((image) => ({ media_type: image.mimeType || image.media_type, data: image.data }));
  const letter = { id: `${Date.now()}-${Math.random()}`, run, text, pictures: [], others: [], images, before };
  outbox.value = [...outbox.value, letter];
  await deliver(letter);
}

/** Say something in place of a message, in a branch that goes on from before it. */
export async function sayInBranch(item, text) {
  const said = conversation.value.items.filter((each) => each.kind === "person" && each.call < item.call && each.text === text).length;
  const { id } = await koi.run(place.value.run).branch({ at: item.from });
  partners.set(id, item.handler);
  go("run", id);
  await resend(id, text, item.images, said);
  await loadRuns();
}

// The runs that the open one goes on from or that go on from it, as `GET api/runs/ID/tree` gives them.
export const family = signal([]);

async function loadFamily() {
  const { run } = place.value;
  const found = runs.value.some((each) => each.parent && (each.id === run || each.parent === run)) ? await koi.run(run).getTree().catch(() => null) : null;
  if (run === place.value.run) family.value = found?.runs || [];
}

/** Send a message, once more if it could not be sent. */
export async function deliver(letter) {
  changeLetter(letter, { state: "sending", error: null });
  try {
    await (letter.run ? tell(letter) : begin(letter));
    changeLetter(letter, { state: "sent" });
  } catch (error) {
    changeLetter(letter, { state: "failed", error });
    if (mustSignIn.value) dropLetter(letter);
    throw error;
  }
}

const fieldsOf = ({ text, images }) => ({ message: text, ...(images.length ? { images } : {}) });

async function tell(letter) {
  const { run, others } = letter, name = partners.get(run);
  await putFiles(run, others);
  const given = await command(run, "prompt", { ...fieldsOf(letter), ...(name ? { name } : {}), streaming_behavior: "steer" });
  partners.delete(run);
  if (given?.note) mine.add(given.note);
  if (others.length) loadFiles();
}

async function begin(letter) {
  const { program, handler, others } = letter, served = program ? { program } : {};
  const { id } = others.length ? await beginWithFiles(served, letter) : await koi.runs.start({ ...served, handler, ...fieldsOf(letter) }, { idempotencyKey: letter.id });
  const isHere = outbox.value.includes(letter) && !place.value.run;
  changeLetter(letter, { run: id });
  if (isHere) {
    sessionStorage.setItem(draftKey({ run: id }), sessionStorage.getItem(draftKey()) || "");
    sessionStorage.removeItem(draftKey());
    go("run", id);
  }
  loadRuns().catch(() => {});
}

/** Begin a conversation whose first message is about files: they are there when it is given. */
async function beginWithFiles(served, letter) {
  const run = await koi.runs.start({ ...served, title: withoutFiles(letter.text).text || letter.others[0].name }, { idempotencyKey: letter.id });
  await putFiles(run.id, letter.others);
  await run.sendMessage({ ...fieldsOf(letter), handler: letter.handler });
  return run;
}

async function putFiles(run, list) {
  for (const file of list) await koi.run(run).putFile(file.name, file);
}

export const isPicture = (file) => /^image\/(png|jpeg|gif|webp)$/.test(file.type);

async function imageOf(file) {
  const address = await dataAddress(file);
  return { media_type: file.type, data: address.slice(address.indexOf(",") + 1) };
}

/** A file as `data:…`. */
export const dataAddress = (file) =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(new KoiError(`\`${file.name}\` cannot be read.`));
    reader.readAsDataURL(file);
  });

/** End what goes on; the conversation stays. Gives what was still to be heard. */
export async function stop() {
  const { queued = [] } = await koi.run(place.value.run).cancel();
  return queued.filter((each) => !each.from || each.from === "person").map((each) => withoutFiles(each.text).text).join("\n\n");
}

export const answer = (request, text) => koi.run(place.value.run).answer({ request: request.id, answer: text });

// Answers to a plan that are still to be given, each to the question that the one before leads to.
let plan = null;

/** Accept a plan with changes: one answer after the other, each only to the question about this very plan. */
export async function decidePlan(request, answers) {
  const [first, ...rest] = answers;
  plan = rest.length ? { path: keyOf(request.path), answers: rest } : null;
  await answer(request, first);
}

function continuePlan(held, id) {
  const request = held.requests.find((each) => each.id === id);
  if (!plan || !request?.plan || keyOf(request.path) !== plan.path) return;
  const next = plan.answers.shift();
  if (!plan.answers.length) plan = null;
  held.requests = held.requests.map((each) => (each === request ? { ...each, isBeingAnswered: true } : each));
  answer(request, next).catch((error) => {
    plan = null;
    problem.value = error;
  });
}

// Every question about a plan has a place of its own within that of the plan.
const keyOf = (path = []) => JSON.stringify(path.slice(0, -1));

// What was filled in, and is answered to the questions about the fields one after the other.
let filled = null;

const formKey = ({ title, schema }) => JSON.stringify([place.value.run, title, schema]);

/** Send a form: the answers by its fields, each of which is asked for in a question of its own. */
export async function fillForm(request, answers) {
  filled = { key: formKey(request.form), answers };
  await answerField(request);
}

function answerField(request) {
  const { field } = request.form, text = filled.answers[field];
  delete filled.answers[field];
  return answer(request, text);
}

function continueForm(held, id) {
  const request = held.requests.find((each) => each.id === id);
  if (!filled || !request?.form || formKey(request.form) !== filled.key || !(request.form.field in filled.answers)) return;
  held.requests = held.requests.map((each) => (each === request ? { ...each, isBeingAnswered: true } : each));
  answerField(request).catch((error) => (problem.value = error));
}

export const approve = (request, decision, reason = "") =>
  koi.run(place.value.run).approve({ request: request.id, decision, ...(reason ? { reason } : {}) });

/** The files of the session. */
export async function loadFiles() {
  const { run } = place.value;
  if (!run) return;
  const found = await koi.run(run).listFiles().catch(() => null);
  if (found && run === place.value.run) files.value = found.files || [];
}

export async function addFiles(list) {
  await putFiles(place.value.run, list);
  await loadFiles();
}

export async function removeFile(path) {
  await koi.run(place.value.run).deleteFile(path);
  await loadFiles();
}

// The conversation that is deleted as soon as nobody can undo it any more: `{all, title, timer}`.
export const deleted = signal(null);
const UNDO_MS = 6000;

/** Delete the runs of a conversation with their files, unless it is undone soon. */
export function forget(all, title) {
  deleteNow();
  deleted.value = { all, title, timer: setTimeout(deleteNow, UNDO_MS) };
  if (all.includes(place.value.run)) go();
}

export function undoDelete() {
  clearTimeout(deleted.value?.timer);
  deleted.value = null;
}

async function deleteNow() {
  if (!deleted.value) return;
  const { all, timer } = deleted.value;
  clearTimeout(timer);
  for (const run of all) if (pinned.value.includes(run)) pin(run, false);
  runs.value = runs.value.filter((run) => !all.includes(run.id));
  deleted.value = null;
  // Requests of a page that is left are sent all the same.
  await Promise.all(all.map((run) => koi.run(run).delete({ keepalive: true }))).catch((error) => (problem.value = error));
  await loadRuns().catch(() => {});
}
addEventListener("pagehide", () => deleteNow());

/** What was said in a conversation; of one that is not open, by its record. */
export async function itemsOf(run) {
  if (run === place.value.run) return conversation.value.items;
  const read = new Conversation(cast);
  for (let page = { last: 0, more: true }; page.more; ) {
    page = await koi.run(run).listEntries({ since: page.last });
    for (const entry of page.entries) read.take({ type: "event", n: entry.n, event: { ...entry, type: entry.kind } });
  }
  return read.items;
}

/** Name a conversation. */
export async function rename(run, name) {
  await command(run, "set_session_name", { name });
  await loadRuns();
}

const pinKey = `koi-pinned-${location.pathname}`;
// Which conversations stand on top, in this browser.
export const pinned = signal(JSON.parse(localStorage.getItem(pinKey) || "[]"));

export function pin(run, isPinned) {
  pinned.value = isPinned ? [run, ...pinned.value] : pinned.value.filter((each) => each !== run);
  localStorage.setItem(pinKey, JSON.stringify(pinned.value));
}

/** The list of conversations that have some words in their title. */
export function groupsNow(words) {
  const handlers = new Set(programs.value.flatMap((program) => (program.agents || []).flatMap((agent) => (agent.handlers || []).map((each) => `${agent.name}.${each.name}`))));
  return grouped(runs.value, { words, pinned: pinned.value, handlers, hidden: deleted.value?.all });
}
