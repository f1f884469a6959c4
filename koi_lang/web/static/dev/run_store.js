// One run as a page follows it: its entries are fetched in pages, reduced, and told by a signal.

import { addEntry, emptyState } from "../store.js";
import { signal } from "../vendor/preact.js";

// Between two looks at what is new while a run works.
const PAUSE_MS = 120;
const LOOK_MS = 700;
const LIVE = new Set(["working", "waiting", "paused", "idle", "asleep"]);

/** Whether a run can be told something. */
export function isLive(state) {
  return LIVE.has(state);
}

/** A run that is followed: `state` is changed in place and `version` tells that it was. */
export function openRun(data, id) {
  const held = {
    id,
    version: signal(0),
    run: signal(null),
    problem: signal(null),
    isLoaded: signal(false),
    isConnected: signal(true),
    open: signal(new Map()),
    writing: signal(new Map()),
    status: signal(""),
    canTalk: signal(false),
    state: null,
  };
  let stop = () => {};
  let isClosed = false;
  let isLoading = false;
  let isDue = false;
  let loading = Promise.resolve();

  function load() {
    isDue = isLoading;
    if (!isLoading) loading = loadAll();
    return loading;
  }

  async function loadAll() {
    isLoading = true;
    try {
      do {
        isDue = false;
        await loadPages();
      } while (isDue && !isClosed);
    } catch (error) {
      held.problem.value = error;
    }
    isLoading = false;
  }

  async function loadPages() {
    for (let more = true; more && !isClosed;) {
      const page = await data.entries(id, held.state.last);
      for (const entry of page.entries) addEntry(held.state, entry);
      more = page.more && page.entries.length > 0;
      if (page.entries.length) held.version.value += 1;
    }
  }

  let timer = 0;
  function loadSoon() {
    if (!timer) {
      timer = setTimeout(() => {
        timer = 0;
        load();
      }, PAUSE_MS);
    }
  }

  function take(message) {
    if (message.type === "connection") held.isConnected.value = message.open || !held.canTalk.value;
    else if (message.type === "rpc_ready") {
      held.canTalk.value = true;
      takeState(message);
    }
    else if (message.type === "event") takeEvent(message);
    else if (message.type === "question" || message.type === "approval_request") changeOpen((open) => open.set(requestOf(message), message));
    else if (message.type === "request_closed") changeOpen((open) => open.delete(requestOf(message)));
    else if (message.type === "state") takeState(message);
  }

  /** What goes on; when the stream begins, it may be something else already than when the run was listed. */
  function takeState({ state }) {
    held.status.value = state;
    loadSoon();
  }

  function takeEvent(message) {
    const event = message.event;
    if (message.n !== undefined || event.seq) loadSoon();
    if (event.type === "output_delta") addWriting(event);
    else if (event.type === "model_answered" && held.writing.value.size) held.writing.value = new Map();
  }

  function addWriting(event) {
    const writing = new Map(held.writing.value);
    const key = `${event.path.join("\n")}\n${event.number}`;
    const before = event.so_far || !writing.has(key) ? "" : writing.get(key).text;
    writing.set(key, { agent: event.agent, text: before + event.text });
    held.writing.value = writing;
  }

  function changeOpen(change) {
    const open = new Map(held.open.value);
    change(open);
    held.open.value = open;
  }

  async function begin() {
    try {
      const run = await data.run(id);
      held.state = emptyState(run.header);
      held.run.value = run;
      held.status.value = run.state;
      await load();
      held.isLoaded.value = true;
      held.version.value += 1;
      if (!data.isFile && !isClosed) follow();
    } catch (error) {
      held.problem.value = error;
    }
  }

  /** Sessions tell what is new; runs of other processes are looked at, too, since not all of them can be talked to. */
  function follow() {
    const { hosted } = held.run.value;
    const isOther = !hosted && isLive(held.status.value);
    const stops = [];
    if (hosted || (isOther && data.serves)) stops.push(data.follow(id, held.state.last, take));
    if (isOther) stops.push(lookOften());
    stop = () => stops.forEach((each) => each());
  }

  function lookOften() {
    const look = setInterval(async () => {
      await load();
      const run = await data.run(id).catch(() => null);
      if (!run) return;
      held.status.value = run.state;
      if (!isLive(run.state)) {
        await load();
        clearInterval(look);
      }
    }, LOOK_MS);
    return () => clearInterval(look);
  }

  held.close = () => {
    isClosed = true;
    clearTimeout(timer);
    stop();
  };
  /** Ask for nothing more, and wait for what was asked: the run is about to be removed. */
  held.leave = async () => {
    held.close();
    await loading;
  };
  held.rejoin = () => {
    isClosed = false;
    follow();
  };
  begin();
  return held;
}

/** The id of a question or an approval, as answers name it. */
export function requestOf(message) {
  return String(message.request ?? message.id ?? "");
}
