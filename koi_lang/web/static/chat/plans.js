// Plans that are proposed: a question to its steps, and what was changed in them to the answers that say so.

const EDITING = "Write `2: other text`, `-2` to leave a step out";
const ENDING = "Accept it, edit it, or say what is wrong with it.";
const STEP = /^(\d+)\. (.*)$/;

/**
 * The plan that a question asks about: `{head, steps: [{text, touches}]}`; null for any other question.
 * @param {{text: string, touches?: string[]}[]} proposed what the agent proposed, which tells a text from what it touches.
 */
export function planIn(question, proposed = []) {
  const lines = String(question.question || "").split("\n");
  const last = lines[lines.length - 1];
  if (last !== ENDING && !last.includes(EDITING)) return null;
  const steps = lines.map((line) => STEP.exec(line)).filter(Boolean).map((found) => stepOf(found[2], proposed));
  const head = lines.filter((line) => !STEP.test(line) && line !== last).join(" ").trim() || "The plan as it is now:";
  return steps.length ? { head, steps } : null;
}

function stepOf(line, proposed) {
  const known = proposed.find((step) => line.endsWith(` (${(step.touches || []).join(", ")})`));
  if (!known || !known.touches?.length) return { text: line, touches: [] };
  return { text: line.slice(0, line.lastIndexOf(` (${known.touches.join(", ")})`)), touches: known.touches };
}

/**
 * The answers that make a plan of another one, in order; the last one accepts it.
 * @param {{text: string}[]} steps as proposed.
 * @param {{from: number|null, text: string}[]} wanted where each came from (an index, null for a new one).
 */
export function editsFor(steps, wanted) {
  const kept = new Map(wanted.filter((step) => step.from !== null).map((step) => [step.from, step.text.trim()]));
  const changes = steps.flatMap(({ text }, at) => (kept.get(at) && kept.get(at) !== text ? [`${at + 1}: ${kept.get(at)}`] : []));
  const added = wanted.filter((step) => step.from === null && step.text.trim()).map((step) => `+ ${step.text.trim()}`);
  const gone = steps.map((_, at) => at).filter((at) => !kept.get(at)).reverse().map((at) => `-${at + 1}`);
  return [...changes, ...added, ...gone, "accept"];
}
