// What the page makes of messages: a line of JSON for each line that comes in.
import { createInterface } from "node:readline";
import { parser } from "../../koi_lang/web/static/client/following.js";
import { Conversation } from "../../koi_lang/web/static/chat/conversation.js";
import { versionsOf } from "../../koi_lang/web/static/chat/branches.js";
import { asAnswer, fieldsOf, problemOf } from "../../koi_lang/web/static/chat/forms.js";
import { editsFor, planIn } from "../../koi_lang/web/static/chat/plans.js";
import { Cast, clause, deed, finishedLength, grouped, money, size, spoken, stepDetails, summary, withFiles, withoutFiles } from "../../koi_lang/web/static/chat/words.js";

function reduce({ messages, programs = [] }) {
  const held = new Conversation(new Cast(programs));
  for (const message of messages) held.take(message);
  const { items, requests, waiting, busy, isInterrupted, isRehearsal, last, changed } = held;
  return { items: items.map(({ version, item, path, ...rest }) => ({ ...rest, steps: rest.kind === "work" ? rest.steps.map(({ one, state, about }) => [one, state, about || ""]) : rest.steps })), requests, waiting, busy, isInterrupted, isRehearsal, last, changed };
}

const asked = {
  reduce,
  plan: ({ question, proposed }) => planIn({ question }, proposed),
  edits: ({ steps, wanted }) => editsFor(steps, wanted),
  versions: ({ family, places }) => places.map(([run, call]) => versionsOf(family, run, call)),
  grouped: ({ runs, how }) => { const { groups, ofPrograms } = grouped(runs, { ...how, handlers: new Set(how.handlers) }); return [groups.map(([day, listed]) => [day, listed.map(({ run, all }) => [run.id, all])]), ofPrograms.map(({ run }) => run.id)]; },
  details: ({ steps }) => steps.map(stepDetails),
  timed: ({ messages }) => { const held = new Conversation(); for (const message of messages) held.take(message); return held.items.flatMap((item) => item.steps || []).map((step) => [step.ended - step.began, step.waited]); },
  form: ({ schema, values }) => fieldsOf(schema).map((field) => [field.title, field.kind, problemOf(field, values[field.name] ?? field.initial), asAnswer(values[field.name] ?? field.initial)]),
  money: ({ usd }) => usd.map(money),
  finished: ({ texts }) => texts.map(finishedLength),
  words: ({ names }) => names.map(spoken),
  clauses: ({ texts }) => texts.map(clause),
  deeds: ({ actions }) => actions.map(([intent, fields]) => { const made = deed(intent, fields); return made && [made.one, made.about]; }),
  summary: ({ actions }) => summary(actions.map((intent) => deed(intent))),
  files: ({ text, names }) => [withFiles(text, names), withoutFiles(withFiles(text, names))],
  sizes: ({ bytes }) => bytes.map(size),
  stream: ({ pieces }) => { const told = []; const take = parser((id, data) => told.push([id, data])); pieces.forEach(take); return told; },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { what, ...given } = JSON.parse(line);
  process.stdout.write(`${JSON.stringify(asked[what](given))}\n`);
}
