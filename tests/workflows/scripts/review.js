export const meta = { name: 'review', description: 'Review a change from several sides, and have each finding refuted' }

const SIDES = [
  { key: 'bugs', ask: 'What is wrong?' },
  { key: 'security', ask: 'What could somebody abuse?' },
  { key: 'tests', ask: 'What is not tested?' },
]
const FINDINGS = {
  type: 'object',
  properties: {
    findings: {
      type: 'array',
      items: {
        type: 'object',
        properties: { title: { type: 'string' }, line: { type: 'integer' }, sure: { type: 'number' } },
        required: ['title', 'line'],
      },
    },
  },
  required: ['findings'],
}
const VOTE = {
  type: 'object',
  properties: { refuted: { type: 'boolean' }, why: { type: 'string' } },
  required: ['refuted', 'why'],
}

async function votes(finding, side, count) {
  const all = await parallel(Array.from({ length: count }, (_, n) => async () => {
    const vote = await agent(
      `Try to refute, as judge ${n + 1}: "${finding.title}" (line ${finding.line}, ${side.key})`,
      { label: `vote:${side.key}:${n}`, schema: VOTE, effort: 'low' },
    )
    return vote
  }))
  return all.filter(vote => vote !== null)
}

const results = await pipeline(
  SIDES,
  side => agent(`Review the change. ${side.ask}`, { label: side.key, phase: 'Review', schema: FINDINGS }),
  (review, side) => parallel(review.findings.map(finding => async () => {
    const heard = await votes(finding, side, finding.line % 2 === 0 ? 2 : 3)
    const against = heard.filter(({ refuted }) => refuted).length
    return { ...finding, side: side.key, stands: against * 2 < heard.length }
  })),
)
const flat = results.flat().filter(Boolean)
const bySide = Object.fromEntries(SIDES.map(({ key }) => [key, flat.filter(f => f.side === key).length]))
return { standing: flat.filter(f => f.stands).map(f => f.title), bySide, total: flat.length }
