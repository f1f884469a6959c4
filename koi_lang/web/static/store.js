// The entries of a journal to the state that pages show: pure, and the only module that knows kinds of entries.
//
// `reduce(header, entries)` gives the state of a whole journal; `addEntry(state, entry)` goes on with it. The same
// entries give the same state, however they were cut into pieces.

export const SEPARATOR = "\n";
const PAID = new Set(["model_answered", "answer_discarded", "texts_embedded"]);
// Models inside of the process, which have no price.
const UNPAID = new Set(["scripted", "rehearsal"]);
// What few people want to see among the steps.
const MINOR = new Set([
  "observed", "fired", "file_kept", "tree_kept", "queue_update", "run_started", "model_wrote", "extension_state",
  "mcp_progress", "only_reads",
]);
// Commands whose runs are sessions, and what these write when they sleep and wake.
const SESSIONS = new Set(["chat", "rpc", "acp", "serve"]);
const AT_REST = new Set(["run_ended", "resumed"]);
// What waits for a person, and what ends that.
const WAITS = { asked: "question", approval_requested: "approval" };
const SETTLES = { answered: "question", approval_given: "approval" };

/** The state before the first entry; `header` is that of the journal. */
export function emptyState(header) {
  return {
    header,
    isSession: SESSIONS.has(header.words?.[0]),
    outcome: "interrupted",
    calls: 0,
    hasFailedLast: false,
    last: 0,
    started: header.started,
    seconds: 0,
    totals: { requests: 0, tokens: 0, usd: 0, unpriced: false },
    entries: new Map(),
    nodes: [],
    byPath: new Map(),
    lanes: new Map(),
    agents: new Map(),
    handlers: new Map(),
    turns: [],
    printed: [],
    changes: [],
    waiting: new Map(),
    isPaused: false,
    title: "",
    input: undefined,
    failure: null,
  };
}

/** The state after all entries of a journal. */
export function reduce(header, entries) {
  const state = emptyState(header);
  for (const entry of entries) addEntry(state, entry);
  return state;
}

/** Take the next entry into a state; one that is known already changes nothing. */
export function addEntry(state, entry) {
  if (state.entries.has(entry.n)) return state;
  state.entries.set(entry.n, entry);
  state.last = Math.max(state.last, entry.n);
  // A session that goes to sleep or wakes does no work.
  if (!state.isSession || !AT_REST.has(entry.kind)) state.seconds = Math.max(state.seconds, entry.ts - state.started);
  const takes = TAKES[entry.kind];
  const node = takes ? takes(state, entry) : addPoint(state, entry);
  countTotals(state, entry, node);
  return state;
}

// ---------------------------------------------------------------- what models took

function countTotals(state, entry, node) {
  const known = PAID.has(entry.kind) && !entry.recalled && !entry.replayed ? paidOf(entry) : null;
  if (known) {
    const turn = { n: entry.n, ts: entry.ts, agent: agentOf(state, entry, node), model: entry.model, ...known };
    state.turns.push(turn);
    addPaid(agentNamed(state, turn.agent), known);
    const handler = node && state.nodes[node.handler];
    if (handler) addPaid(handlerNamed(state, handler), known);
    if (node) addPaid(node, known);
  }
  if (isTotals(entry.totals)) state.totals = { ...entry.totals };
  else if (known) addPaid(state.totals, known);
}

/** What an entry tells that something took: `{requests, tokens, usd, unpriced, input, output, cached}`. */
export function paidOf(entry) {
  const tokens = entry.tokens && typeof entry.tokens === "object" ? entry.tokens : {};
  const [input, output, cached] = ["input", "output", "cached"].map((name) => Math.trunc(Number(tokens[name]) || 0));
  const isPriced = typeof entry.usd === "number";
  const unpriced = !isPriced && !UNPAID.has(entry.model);
  return { requests: 1, tokens: input + output, usd: isPriced ? entry.usd : 0, unpriced, input, output, cached };
}

function addPaid(sums, paid) {
  sums.requests = (sums.requests || 0) + paid.requests;
  sums.tokens = (sums.tokens || 0) + paid.tokens;
  sums.usd = (sums.usd || 0) + paid.usd;
  sums.unpriced = Boolean(sums.unpriced || paid.unpriced);
}

function isTotals(value) {
  return Boolean(value) && typeof value.requests === "number" && typeof value.tokens === "number"
    && typeof value.usd === "number" && typeof value.unpriced === "boolean";
}

// ---------------------------------------------------------------- nodes: whatever has a place, a beginning and an end

function keyOf(path) {
  return path.join(SEPARATOR);
}

/** What stands around a path, of what is known: the nearest node, or undefined. */
function around(state, path) {
  for (let length = path.length - 1; length > 0; length -= 1) {
    const index = state.byPath.get(keyOf(path.slice(0, length)));
    if (index !== undefined) return state.nodes[index];
  }
  return undefined;
}

function agentOf(state, entry, node) {
  if (entry.agent) return entry.agent;
  const outer = node || around(state, entry.path);
  return outer ? outer.agent : "";
}

function addNode(state, entry, kind, more) {
  const outer = around(state, entry.path);
  const index = state.nodes.length;
  const node = {
    index,
    kind,
    n: entry.n,
    endN: null,
    path: entry.path,
    label: entry.path.length ? entry.path[entry.path.length - 1] : "",
    agent: entry.agent || (outer ? outer.agent : ""),
    outer: outer ? outer.index : null,
    depth: outer ? outer.depth + 1 : 0,
    handler: kind === "handler" ? index : outer ? outer.handler : null,
    t0: entry.ts - state.started,
    t1: null,
    status: "open",
    title: "",
    detail: "",
    error: "",
    recalled: Boolean(entry.recalled),
    minor: MINOR.has(entry.kind),
    row: 0,
    ownsRow: false,
    busy: 0,
    ...more,
  };
  state.nodes.push(node);
  // Whoever waits at the place of an action does not stand for it.
  if (entry.path.length && kind !== "point" && kind !== "wait") state.byPath.set(keyOf(entry.path), index);
  enterLane(state, node, outer);
  agentNamed(state, node.agent);
  return node;
}

function addPoint(state, entry, more) {
  const node = addNode(state, entry, "point", { status: "ok", title: entry.kind, ...describe(entry), ...more });
  node.t1 = node.t0;
  node.endN = entry.n;
  return node;
}

function endNode(state, node, entry, status, more) {
  if (!node) return addPoint(state, entry);
  if (node.status === "open") leaveLane(state, node);
  node.endN = entry.n;
  node.t1 = entry.ts - state.started;
  node.status = status;
  return Object.assign(node, more);
}

function nodeAt(state, path) {
  const index = state.byPath.get(keyOf(path));
  return index === undefined ? undefined : state.nodes[index];
}

// ---------------------------------------------------------------- lanes: an agent each, with a row for what goes on at a time

function laneOf(state, agent) {
  if (!state.lanes.has(agent)) state.lanes.set(agent, { agent, taken: [], rows: 1 });
  return state.lanes.get(agent);
}

function takeRow(lane) {
  let row = lane.taken.indexOf(false);
  if (row < 0) row = lane.taken.push(true) - 1;
  lane.taken[row] = true;
  lane.rows = Math.max(lane.rows, lane.taken.length);
  return row;
}

/** A handler has a row of its own; what goes on in it stands there, too, unless something else does. */
function enterLane(state, node, outer) {
  const lane = laneOf(state, node.agent);
  const inside = outer && outer.handler !== null ? state.nodes[outer.handler] : null;
  if (node.kind === "point" || node.kind === "wait") {
    node.row = inside && inside.agent === node.agent ? (outer.agent === node.agent ? outer.row : inside.row) : 0;
    return;
  }
  if (node.kind !== "handler" && inside && inside.agent === node.agent && inside.status === "open") {
    node.holder = inside.index;
    if (inside.busy === 0 || outer !== inside) {
      node.row = outer.agent === node.agent ? outer.row : inside.row;
      if (outer === inside) inside.busy = 1;
      node.isBusy = outer === inside;
      return;
    }
  }
  node.row = takeRow(lane);
  node.ownsRow = true;
}

function leaveLane(state, node) {
  if (node.isBusy) state.nodes[node.holder].busy = 0;
  if (node.ownsRow) state.lanes.get(node.agent).taken[node.row] = false;
}

// ---------------------------------------------------------------- agents and handlers

function agentNamed(state, name) {
  if (!state.agents.has(name)) {
    state.agents.set(name, { name, calls: 0, actions: 0, requests: 0, tokens: 0, usd: 0, unpriced: false, failed: 0 });
  }
  return state.agents.get(name);
}

function handlerNamed(state, node) {
  const name = node.label.replace(/#\d+$/, "");
  if (!state.handlers.has(name)) {
    const none = { requests: 0, tokens: 0, usd: 0, unpriced: false };
    state.handlers.set(name, { name, calls: 0, open: 0, failed: 0, seconds: 0, ...none });
  }
  return state.handlers.get(name);
}

function endHandler(state, entry, status, more) {
  const node = nodeAt(state, entry.path);
  const wasOpen = node && node.status === "open";
  const ended = endNode(state, node, entry, status, more);
  if (wasOpen) {
    const handler = handlerNamed(state, node);
    handler.open -= 1;
    handler.seconds += node.t1 - node.t0;
    handler.failed += status === "failed" ? 1 : 0;
  }
  return ended;
}

/** What was under way is so no more. */
function cutOpen(state, entry) {
  for (const node of state.nodes) {
    if (node.status !== "open") continue;
    if (node.kind === "handler") handlerNamed(state, node).open -= 1;
    endNode(state, node, entry, "cut");
  }
  state.waiting.clear();
}

// ---------------------------------------------------------------- kinds

const TAKES = {
  run_started(state, entry) {
    state.outcome = "interrupted";
    return addPoint(state, entry);
  },
  resumed(state, entry) {
    state.outcome = "interrupted";
    cutOpen(state, entry);
    return addPoint(state, entry);
  },
  run_ended(state, entry) {
    state.outcome = entry.ok ? "ok" : entry.interrupted ? "interrupted" : "failed";
    cutOpen(state, entry);
    return addPoint(state, entry, { status: entry.ok ? "ok" : "failed", title: `run ended: ${state.outcome}` });
  },
  call_started(state, entry) {
    state.calls += 1;
    state.hasFailedLast = false;
    if (!state.title) setTitle(state, entry.name, entry.args);
    return addPoint(state, entry);
  },
  call_ended(state, entry) {
    state.calls -= 1;
    state.hasFailedLast = !entry.ok && !entry.aborted;
    if (entry.aborted && state.calls <= 0) cutOpen(state, entry);
    return addPoint(state, entry);
  },
  handler_started(state, entry) {
    const node = addNode(state, entry, "handler", { title: nameOf(entry), detail: short(entry.args), ...bounds(entry) });
    if (!state.title) setTitle(state, node.title, entry.args);
    const handler = handlerNamed(state, node);
    handler.calls += 1;
    handler.open += 1;
    agentNamed(state, node.agent).calls += 1;
    return node;
  },
  handler_ended(state, entry) {
    return endHandler(state, entry, "ok", { came: short(entry.result) });
  },
  handler_failed(state, entry) {
    state.failure = { n: entry.n, error: entry.error };
    return endHandler(state, entry, "failed", { error: entry.error });
  },
  timed_out(state, entry) {
    const node = nodeAt(state, entry.path);
    return node ? endHandler(state, entry, "failed", { error: entry.error }) : addPoint(state, entry, failing(entry));
  },
  begun(state, entry) {
    const kind = "id" in entry ? "action" : "effect";
    const node = addNode(state, entry, kind, { title: entry.intent, detail: short(shownFields(entry)) });
    if (kind === "action") agentNamed(state, node.agent).actions += 1;
    return node;
  },
  done(state, entry) {
    return endAction(state, entry, "ok", { came: entry.opaque ? "[cannot be kept]" : short(entry.result) });
  },
  failed(state, entry) {
    const node = endAction(state, entry, "failed", { error: String(entry.error) });
    agentNamed(state, node.agent).failed += 1;
    return node;
  },
  model_asked(state, entry) {
    const known = nodeAt(state, entry.path);
    if (known && known.status === "open") return known;
    return addNode(state, entry, "model", { title: `asks ${entry.model}`, model: entry.model, text: "", requestN: entry.n });
  },
  model_wrote(state, entry) {
    const node = nodeAt(state, entry.path);
    if (node) node.text = (node.text || "") + (entry.text || "");
    return node || addPoint(state, entry);
  },
  model_answered(state, entry) {
    const more = { text: entry.text, came: short(entry.text), stop: entry.stop };
    return endNode(state, nodeAt(state, entry.path), entry, "ok", more);
  },
  model_failed(state, entry) {
    return endNode(state, nodeAt(state, entry.path), entry, "failed", { error: entry.error });
  },
  printed(state, entry) {
    state.printed.push({ n: entry.n, text: entry.message });
    return addPoint(state, entry);
  },
  state_changed(state, entry) {
    state.changes.push({ n: entry.n, agent: entry.agent, updates: entry.updates });
    return addPoint(state, entry);
  },
  paused(state, entry) {
    state.isPaused = true;
    return addPoint(state, entry);
  },
  continued(state, entry) {
    state.isPaused = false;
    return addPoint(state, entry);
  },
  session_named(state, entry) {
    state.title = entry.name;
    return addPoint(state, entry);
  },
  answer_discarded(state, entry) {
    return addPoint(state, entry, { status: "failed" });
  },
  ...Object.fromEntries(Object.keys(WAITS).map((kind) => [kind, beginWait])),
  ...Object.fromEntries(Object.keys(SETTLES).map((kind) => [kind, endWait])),
  ...Object.fromEntries(
    ["retry_started", "embedding_failed", "hook_failed", "consumer_dropped", "expectation_missed"].map((kind) => [
      kind, (state, entry) => addPoint(state, entry, failing(entry)),
    ]),
  ),
};

function endAction(state, entry, status, more) {
  const node = nodeAt(state, entry.path);
  if (node && node.status === "open") return endNode(state, node, entry, status, more);
  // What only reads is told when it has ended, and what was done again after a break has ended before.
  const made = addNode(state, entry, "id" in entry ? "action" : "effect", {
    title: entry.intent,
    detail: short(shownFields(entry)),
  });
  return endNode(state, made, entry, status, more);
}

function waitKey(path, kind) {
  return `${kind}${SEPARATOR}${keyOf(path)}`;
}

function beginWait(state, entry) {
  const kind = WAITS[entry.kind];
  const node = addNode(state, entry, "wait", { waits: kind, ...describe(entry) });
  state.waiting.set(waitKey(entry.path, kind), node.index);
  return node;
}

function endWait(state, entry) {
  const key = waitKey(entry.path, SETTLES[entry.kind]);
  const index = state.waiting.get(key);
  state.waiting.delete(key);
  if (index === undefined) return addPoint(state, entry);
  const status = entry.answer === "no" && entry.kind === "approval_given" ? "failed" : "ok";
  return endNode(state, state.nodes[index], entry, status, { came: short(entry.answer) });
}

function setTitle(state, name, args) {
  state.input = args;
  const text = args && typeof args === "object" ? Object.values(args).find((value) => typeof value === "string") : args;
  state.title = typeof text === "string" && text.trim() ? short(text, 80) : name;
}

// ---------------------------------------------------------------- texts

function nameOf(entry) {
  return entry.path.length ? entry.path[entry.path.length - 1].replace(/#\d+$/, "") : entry.event;
}

function bounds(entry) {
  return Array.isArray(entry.narrowed_to) && entry.narrowed_to.length ? { as: entry.narrowed_to.join(", ") } : {};
}

/** The fields of an action as they are shown beside its name: those of a delegate are its data. */
function shownFields(entry) {
  const fields = entry.fields || {};
  const names = Object.keys(fields);
  return names.length === 1 && ["data", "message", "question", "args", "updates"].includes(names[0])
    ? fields[names[0]]
    : fields;
}

function failing(entry) {
  return { status: "failed", ...describe(entry), error: String(entry.error || entry.message || "") };
}

/** A value in one line. */
export function short(value, longest = 160) {
  if (value === undefined) return "";
  const text = (typeof value === "string" ? value : JSON.stringify(value)).replace(/\s+/g, " ").trim();
  return text.length > longest ? `${text.slice(0, longest)}…` : text;
}

const TEXTS = {
  run_started: () => ["run started"],
  resumed: () => ["resumed"],
  printed: (entry) => ["prints", entry.message],
  asked: (entry) => ["asks the person", entry.question],
  approval_requested: (entry) => ["asks for approval", entry.what],
  approval_given: (entry) => ["approval", `${entry.answer}: ${entry.what}`],
  answered: (entry) => ["answered", entry.answer],
  state_changed: (entry) => ["state", short(entry.updates)],
  retry_started: (entry) => [`tries again (${entry.attempt} of ${entry.tries})`, entry.model || entry.handler],
  retry_ended: (entry) => [entry.ok ? "trying again helped" : "trying again did not help", entry.model],
  model_replaced: (entry) => ["another model", `${entry.by} for ${entry.model}`],
  answer_discarded: (entry) => ["answer discarded", entry.model],
  texts_embedded: (entry) => ["texts ranked", entry.model],
  compacted: (entry) => ["conversation shortened", `${entry.tokens_before} to ${entry.tokens_after} tokens`],
  steered: (entry) => ["is told", entry.text],
  hook_decided: (entry) => ["hook", `${entry.decision} ${entry.intent}`],
  hook_replaced: (entry) => ["hook replaced a result", entry.intent],
  hook_failed: (entry) => ["hook failed", entry.hook],
  file_changed: (entry) => ["changes a file", entry.file],
  file_kept: (entry) => ["keeps a file", entry.file],
  file_restored: (entry) => ["file put back", entry.file],
  plan_decided: (entry) => [`plan ${entry.answer}`, short(entry.steps)],
  plan_step_finished: (entry) => [`plan ${entry.step} of ${entry.steps}`, entry.text],
  round_started: (entry) => [`round ${entry.round} of ${entry.rounds}`],
  round_ended: (entry) => [`round ${entry.round}: ${entry.decision}`, entry.score === null ? "" : `score ${entry.score}`],
  observed: (entry) => [`looks at the ${entry.what}`, short(entry.value)],
  fired: () => ["timer"],
  call_started: (entry) => ["call", entry.name],
  call_ended: (entry) => [entry.ok ? "call ended" : entry.aborted ? "call cancelled" : "call failed", entry.name],
  timed_out: () => ["took too long"],
  score_given: (entry) => ["score", `${entry.name} ${entry.value}`],
  allowed: (entry) => ["allowed for always", entry.rule],
  doubt_settled: (entry) => ["doubt", `${entry.intent}: ${entry.decision}`],
  session_named: (entry) => ["named", entry.name],
  mcp_progress: (entry) => [`${entry.mcp}: ${entry.progress}${entry.total ? ` of ${entry.total}` : ""}`, entry.message],
};

/** What an entry tells in words: `{title, detail}`. */
export function describe(entry) {
  const [title, detail] = TEXTS[entry.kind] ? TEXTS[entry.kind](entry) : [entry.kind.replaceAll("_", " "), ""];
  return { title: String(title), detail: short(detail === undefined ? "" : detail) };
}

// ---------------------------------------------------------------- questions that pages ask of a state

/** What a run is to people: `interrupted` while its process lives is `running`; a session fails with its last call. */
export function summaryOf(state) {
  const { outcome, seconds, totals, isSession, hasFailedLast } = state;
  return { state: isSession && hasFailedLast ? "failed" : outcome, seconds, ...totals };
}

/** The entries that one can go back to, each as `{n, depth, text, canAnswer}`: as `koi runs tree` shows them. */
export function placesOf(state) {
  const places = [];
  for (const entry of state.entries.values()) {
    const text = entry.recalled ? "" : placeText(state, entry);
    if (text) {
      const depth = Math.max(0, entry.path.length - 1);
      places.push({ n: entry.n, depth, kind: entry.kind, text, canAnswer: answerOf(entry) !== null });
    }
  }
  return places;
}

function placeText(state, entry) {
  const before = entry.path.length > 1 ? entry.path[entry.path.length - 2] : "";
  switch (entry.kind) {
    case "handler_started":
      return `${nameOf(entry)} ${short(entry.args, 60)}`;
    case "model_answered":
      return `model: ${short(entry.text, 60)}`;
    case "done":
    case "failed": {
      const node = nodeAt(state, entry.path);
      const came = entry.kind === "done" ? `→ ${short(entry.result, 60)}` : `failed: ${short(entry.error, 60)}`;
      return `${entry.intent} ${node ? short(node.detail, 60) : ""} ${came}`;
    }
    case "printed":
      return before.startsWith("print#") ? "" : `print ${short(entry.message, 60)}`;
    case "round_ended":
      return describe(entry).title;
    case "resumed":
      return "resumed";
    default:
      return "";
  }
}

/** What was answered at an entry where another answer can be given; null for all other entries. */
export function answerOf(entry) {
  if (entry.kind === "model_answered") return String(entry.text ?? "");
  const isPerson = entry.kind === "done" && entry.intent === "prompt_user" && entry.result && typeof entry.result === "object";
  return isPerson ? String(entry.result.answer ?? "") : null;
}

/** The state of an agent after the n-th entry. */
export function agentState(state, agent, n) {
  const found = {};
  for (const change of state.changes) if (change.agent === agent && change.n <= n) Object.assign(found, change.updates);
  return found;
}

/** What a model was told in a request, from the entries of its run: `{system, messages: [{role, text, isNew}]}`. */
export function requestOf(entries, n) {
  const asked = [...entries].filter((entry) => entry.kind === "model_asked" && entry.n <= n);
  const target = asked.find((entry) => entry.n === n);
  if (!target || !Array.isArray(target.messages)) return null;
  const byDigest = new Map();
  const lastIn = new Map();
  for (const entry of asked) {
    const place = keyOf(entry.path.slice(0, -1));
    const before = entry.after ? byDigest.get(entry.after) : lastIn.get(place);
    const known = before || { system: "", messages: [] };
    const made = {
      system: entry.system === undefined ? known.system : entry.system,
      isNewSystem: entry.system !== undefined,
      messages: [
        ...known.messages.slice(0, entry.kept || 0).map((message) => ({ ...message, isNew: false })),
        ...(entry.messages || []).map(([role, text]) => ({ role, text, isNew: true })),
      ],
    };
    lastIn.set(place, made);
    if (entry.request) byDigest.set(entry.request, made);
  }
  return lastIn.get(keyOf(target.path.slice(0, -1))) || null;
}
