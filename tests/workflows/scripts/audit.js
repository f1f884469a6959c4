export const meta = {
  name: 'audit-handlers',
  description: 'Look at every request handler for a missing check of the session',
  phases: [{ title: 'Find', detail: 'one agent lists them' }, { title: 'Check' }, { title: 'Report' }],
}

const LIST = {
  type: 'object',
  properties: { files: { type: 'array', items: { type: 'string' } } },
  required: ['files'],
}
const VERDICT = {
  type: 'object',
  properties: {
    file: { type: 'string' },
    missing: { type: 'boolean' },
    severity: { type: 'string', enum: ['low', 'medium', 'high'] },
  },
  required: ['file', 'missing', 'severity'],
}

phase('Find')
const { files } = await agent(`List the handlers below ${args.folder ?? 'src'}.`, { schema: LIST, label: 'list' })
log(`${files.length} handlers`)

phase('Check')
const verdicts = await parallel(
  files.map((file, i) => () =>
    agent(`Does ${file} check the session before it answers?`, { label: `check:${i + 1}`, phase: 'Check', schema: VERDICT })
  )
)

const rank = { high: 0, medium: 1, low: 2 }
const bad = verdicts
  .filter(Boolean)
  .filter(v => v.missing)
  .sort((a, b) => rank[a.severity] - rank[b.severity] || a.file.localeCompare(b.file))

phase('Report')
const report = bad.length === 0
  ? 'nothing is missing'
  : await agent(`Write a report about:\n${bad.map(b => `- [${b.severity}] ${b.file}`).join('\n')}`)
return { checked: verdicts.length, bad, report }
