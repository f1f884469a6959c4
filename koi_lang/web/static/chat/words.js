// What goes on, in words for people: from what a program says of its agents, never from names of its parts.

/** `WeatherDesk` and `weather_desk` as people write them: `Weather desk`. */
export function spoken(name) {
  const words = String(name || "").replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/[_\-.:]+/g, " ").trim().toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A sentence of a program as a part of one: no full stop, and small at its beginning unless it is a name or acronym. */
export function clause(text) {
  const plain = String(text || "").trim().replace(/[.\s]+$/, "");
  return /^[A-Z][a-z]+\b/.test(plain) ? plain.charAt(0).toLowerCase() + plain.slice(1) : plain;
}

/** What agents and their handlers are for, by name: made of `GET api/program`. */
export class Cast {
  constructor(programs = []) {
    this.agents = new Map(programs.flatMap((program) => (program.agents || []).map((agent) => [agent.name, agent])));
  }

  /** What an agent does when it is asked for something: `researcher: look up facts`. */
  doing(agent, event) {
    const known = this.agents.get(agent);
    const handler = (known?.handlers || []).find((each) => each.name === event);
    const purpose = clause(handler?.affordance || known?.affordance || "");
    return purpose ? `${spoken(agent)}: ${purpose}` : `${spoken(agent)} works on it`;
  }
}

// Of an action: what is said of one, of several, and the field that tells which. The first that fits its name counts.
const DEEDS = [
  [/shell|command|execute|run_tests/, "runs a command", (n) => `runs ${n} commands`, "command"],
  [/grep|search|find|outline|symbol|glob|ripgrep/, "searches", (n) => `searches ${n} times`, ""],
  [/read|open_file|list|look|view|cat\b/, "reads", (n) => `reads ${n} times`, "path"],
  [/write|edit|change|save|create|append|delete|move|replace/, "changes a file", (n) => `changes files ${n} times`, "path"],
  [/http|fetch|web|url|download|browse/, "looks on the web", (n) => `looks on the web ${n} times`, "url"],
];
const NOTES = /^registry_|^update_state$/;
// What is seen anyway, or is only how a model arranges its work.
const UNTOLD = /^(print|return|prompt_user|prompt_form|format|if|while|repeat|propose_plan|finish_step|action_history|ask_parent|plan_question|read_output|call_llm)$/;

/** The deed that an action or effect is: `{one, several, about}`; null where there is nothing to tell. */
export function deed(intent, fields = {}) {
  const name = String(intent || "");
  if (UNTOLD.test(name) || name.includes("::")) return null;
  if (NOTES.test(name)) return { one: "looks into its notes", several: () => "looks into its notes", about: "" };
  const inner = name === "call_mcp" || name === "call_skill" ? `${fields.tool || fields.name || ""}` : name;
  for (const [form, one, several, field] of DEEDS) {
    if (form.test(inner.toLowerCase())) return { one, several, about: short(fields[field] ?? fields.data?.[field]) };
  }
  return { one: "uses a tool", several: (n) => `uses tools ${n} times`, about: "" };
}

function short(value) {
  const text = typeof value === "string" ? value.replace(/\s+/g, " ").trim() : "";
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}

/** Deeds in a row as one line: `reads 3 times · Researcher: look up facts`. */
export function summary(steps) {
  const counts = new Map();
  for (const step of steps) {
    const known = counts.get(step.one);
    counts.set(step.one, { step, n: (known?.n || 0) + 1 });
  }
  const parts = [...counts.values()].map(({ step, n }) => (n === 1 ? step.one : step.several(n)));
  const shown = parts.slice(0, 4);
  const line = [...shown, ...(parts.length > shown.length ? [`${parts.length - shown.length} more`] : [])].join(" · ");
  return line.charAt(0).toUpperCase() + line.slice(1);
}

/** `3 s`, `2 min 5 s`. */
export function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min${whole % 60 ? ` ${whole % 60} s` : ""}`;
}

const WITH_FILES = /^([\s\S]*?)(?:\n\n|^)Files: (`[^`\n]+`(?:, `[^`\n]+`)*)$/;

/** A message with files, as the agent is told of them; and the other way round, as it was written. */
export const withFiles = (text, names) => (names.length ? `${text}\n\nFiles: ${names.map((name) => `\`${name.replaceAll("`", "'")}\``).join(", ")}`.trim() : text);
export function withoutFiles(text) {
  const found = WITH_FILES.exec(text);
  return found ? { text: found[1].trim(), names: found[2].slice(1, -1).split("`, `") } : { text, names: [] };
}

/** `1.4 kB`. */
export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  const [value, unit] = bytes < 1e6 ? [bytes / 1e3, "kB"] : [bytes / 1e6, "MB"];
  return `${value.toFixed(value < 10 ? 1 : 0)} ${unit}`;
}

/** When something was, as people say it today. */
export function when(seconds, now = Date.now()) {
  const moment = new Date(typeof seconds === "number" ? seconds * 1000 : seconds);
  if (Number.isNaN(moment.getTime())) return "";
  const days = Math.round((new Date(now).setHours(0, 0, 0, 0) - new Date(moment).setHours(0, 0, 0, 0)) / 86_400_000);
  if (days === 0) return moment.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  if (days === 1) return "yesterday";
  return days < 7 ? moment.toLocaleDateString([], { weekday: "long" }) : moment.toLocaleDateString();
}

/** What went wrong, for people: by the class of the error with which a model failed last; empty where none did. */
export function failureText(modelError, isLate = false) {
  if (modelError === "LimitReachedError") return "A limit is reached of what this may cost.";
  if (modelError) return "The assistant cannot be reached.";
  return isLate ? "It took too long, so it was ended." : "That did not work.";
}

const REFUSALS = {
  unreachable: "The service cannot be reached at the moment.",
  too_large: "That is too large to be sent.",
  limit_reached: "A limit is reached for now. Try again later.",
  overloaded: "Too much is going on at the moment. Try again soon.",
  agent_busy: "Something else is still going on. Try again when it has ended.",
  not_allowed_here: "That is not possible while it works.",
  program_broken: "This assistant is not available at the moment.",
  program_changed: "This assistant was changed, so the conversation cannot go on as it is.",
  model_unavailable: "The assistant cannot be reached.",
  unknown_run: "This conversation is not there any more.",
  unknown_request: "This was answered already.",
};

/** Why something was refused, for people; what the page itself says stays as it is. */
export const refusalText = (error) => (error.status === undefined ? error.message : REFUSALS[error.code] || (error.status === 413 ? REFUSALS.too_large : "That did not work."));

/** The day of a moment as a heading of a list. */
export function dayOf(seconds, now = Date.now()) {
  const moment = new Date(seconds * 1000), midnight = new Date(now).setHours(0, 0, 0, 0);
  const days = Math.round((midnight - new Date(moment).setHours(0, 0, 0, 0)) / 86_400_000);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days < 7) return "Last 7 days";
  return moment.toLocaleDateString([], { month: "long", year: "numeric" });
}

/**
 * Runs as a list of conversations: `{groups: [[day, [{run, all}]]], ofPrograms}`; branches stand with what they go on from.
 * @param {{words?: string, pinned?: string[], handlers?: Set<string>, hidden?: string[]}} how `handlers` are titles of what programs have begun.
 */
export function grouped(runs, { words = "", pinned = [], handlers = new Set(), hidden = [], now = Date.now() } = {}) {
  const byId = new Map(runs.map((run) => [run.id, run])), families = new Map();
  for (const run of runs) {
    let root = run;
    while (byId.has(root.parent)) root = byId.get(root.parent);
    families.set(root.id, [...(families.get(root.id) || []), run]);
  }
  const last = (run) => run.updated || run.started;
  const listed = [...families.values()].map((members) => ({ run: members.reduce((one, other) => (last(other) > last(one) ? other : one)), all: members.map((each) => each.id) }))
    .filter(({ run, all }) => !all.some((id) => hidden.includes(id)) && (run.title || "").toLowerCase().includes(words.trim().toLowerCase()))
    .sort((one, other) => last(other.run) - last(one.run));
  const isPinned = ({ all }) => all.some((id) => pinned.includes(id)), isOfProgram = ({ run }) => handlers.has(run.title);
  const groups = new Map(listed.some(isPinned) ? [["Pinned", listed.filter(isPinned)]] : []);
  for (const each of listed.filter((one) => !isPinned(one) && !isOfProgram(one))) {
    const day = dayOf(last(each.run), now);
    groups.set(day, [...(groups.get(day) || []), each]);
  }
  return { groups: [...groups], ofPrograms: listed.filter((one) => !isPinned(one) && isOfProgram(one)) };
}

/** A conversation as a file of Markdown. */
export function asMarkdown(title, items) {
  const parts = items.flatMap((item) => {
    if (item.kind === "person") return [`**You:** ${item.text || JSON.stringify(item.fields ?? "")}`];
    if (item.kind === "answer") return [`**${spoken(item.agent)}:**\n\n${item.text}`];
    if (item.kind === "asked") return [`*${item.text}* ${item.answer ?? ""}`];
    if (item.kind === "result") return [`\`\`\`json\n${JSON.stringify(item.value, null, 2)}\n\`\`\``];
    return item.kind === "note" || item.kind === "failure" ? [`_${item.text}_`] : [];
  });
  return [`# ${title}`, ...parts, ""].join("\n\n");
}

const isText = (value) => typeof value === "string" && value !== "";
const signed = (sign, text) => (isText(text) ? text.replace(/\n$/, "").split("\n").map((line) => sign + line).join("\n") : "");

/** What a step did, as far as it is told: `{command, diff, output, exit, value}`; null where there is nothing to open. */
export function stepDetails({ fields = {}, result, about }) {
  const given = fields && typeof fields === "object" ? fields : {}, came = result !== null && typeof result === "object" && !Array.isArray(result) ? result : {};
  const diff = [signed("-", given.before), signed("+", given.after ?? given.content)].filter(Boolean).join("\n");
  const output = isText(result) ? result : [came.stdout, came.stderr, came.content, came.output].filter(isText).map((text) => text.replace(/\n$/, "")).join("\n") || (came.success === false && isText(came.error) ? came.error : "");
  const isPlain = output || diff || isText(given.command) || result === undefined || result === null || Object.keys(came).every((name) => name === "success" || name === "path");
  const made = { command: isText(given.command) ? given.command : "", diff, output: output.replace(/\n$/, ""), exit: came.exitCode ?? null, value: isPlain && !Array.isArray(result) ? null : result };
  return made.command || made.diff || made.output || made.value !== null ? made : about && isText(given.path) ? { ...made, command: given.path } : null;
}

/** `$0.02`; what is less than a cent, too. */
export const money = (usd) => (usd > 0 && usd < 0.01 ? "under $0.01" : `$${usd.toFixed(2)}`);

// The end of a sentence, and not the full stop behind the number of a list.
const SENTENCE = /(?<!(?:^|\n)\s*\d+)[.!?…:](?=\s)|\n/g;

/** How much of a text that grows is finished: whole sentences, and tables and code as a whole. */
export function finishedLength(text) {
  let end = 0;
  for (const found of text.matchAll(SENTENCE)) end = found.index + 1;
  const block = text.lastIndexOf("\n\n") + 2;
  return /^\s*(?:\||```)/.test(text.slice(block > 1 ? block : 0)) ? Math.min(end, block > 1 ? block : 0) : end;
}
