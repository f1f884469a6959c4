// Runs a workflow script in Node with agents that answer by the schema they are given; prints calls and value as JSON.
import { readFileSync } from 'node:fs'

const [file, given = '{}'] = process.argv.slice(2)
const answers = {}, calls = []
const NUMBER = text => [...text].reduce((sum, sign) => (sum * 31 + sign.codePointAt(0)) % 997, 7)

function valueOf(schema, text, root = schema) {
  const seed = NUMBER(text)
  if (schema.$ref) return valueOf(root.$defs[schema.$ref.split('/').pop()], text, root)
  if (schema.enum) return schema.enum[seed % schema.enum.length]
  if (schema.anyOf) return valueOf(schema.anyOf[0], text, root)
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case 'object': {
      const named = Object.entries(schema.properties ?? {})
      return Object.fromEntries(named.map(([name, each]) => [name, valueOf(each, `${text}.${name}`, root)]))
    }
    case 'array':
      return [0, 1].map(n => valueOf(schema.items, `${text}[${n}]`, root))
    case 'integer':
      return seed % 11
    case 'number':
      return (seed % 100) / 4
    case 'boolean':
      return seed % 2 === 0
  }
  return `text ${seed}`
}

async function agent(prompt, options = {}) {
  const answer = options.schema ? valueOf(options.schema, prompt) : `answer ${NUMBER(prompt)}`
  answers[prompt] = answer
  calls.push(prompt)
  await null
  return answer
}
const settled = async work => { try { return await work() } catch { return null } }
const parallel = thunks => Promise.all(thunks.map(settled))
const pipeline = (items, ...stages) =>
  Promise.all(items.map((item, index) => settled(async () => {
    let value = item
    for (const stage of stages) value = await stage(value, item, index)
    return value
  })))

const source = readFileSync(file, 'utf8').replace('export const meta', 'const meta')
const AsyncFunction = (async () => {}).constructor
const names = ['args', 'agent', 'parallel', 'pipeline', 'phase', 'log', 'budget']
const budget = { total: null, spent: () => 0, remaining: () => Infinity }
const run = new AsyncFunction(...names, source)
const outcome = { answers, calls }
try {
  outcome.value = await run(JSON.parse(given), agent, parallel, pipeline, () => {}, () => {}, budget)
} catch (error) {
  outcome.error = String(error)
}
console.log(JSON.stringify(outcome))
