export const meta = {
  name: 'research', description: 'Search from several angles until two rounds bring nothing new',
}
const QUESTION = typeof args === 'string' ? args : args?.question ?? 'how do swifts sleep'
const FOUND = {
  type: 'object',
  properties: { sources: { type: 'array', items: { type: 'object', properties: { url: { type: 'string' }, claim: { type: 'string' } }, required: ['url', 'claim'] } } },
  required: ['sources'],
}
const seen = new Map()
let round = 0, dry = 0
while (dry < 2 && round < 4) {
  round += 1
  phase(`Round ${round}`)
  const batches = await parallel(['papers', 'forums'].map(angle => () =>
    agent(`${QUESTION}? Search in ${angle}, round ${Math.min(round, 2)}.`, { schema: FOUND, label: `${angle}#${round}` })))
  const before = seen.size
  for (const batch of batches) {
    if (!batch || !Array.isArray(batch.sources)) continue
    for (const { url, claim } of batch.sources) {
      const key = url.toLowerCase().replace(/[^a-z0-9]+/g, '-')
      if (!seen.has(key)) seen.set(key, { url, claims: [] })
      seen.get(key).claims.push(claim)
    }
  }
  dry = seen.size === before ? dry + 1 : 0
  log(`round ${round}: ${seen.size - before} new`)
}
const listed = [...seen.values()].map(({ url, claims }, i) => `${i + 1}. ${url}: ${[...new Set(claims)].join('; ')}`)
const answer = await agent(`Answer "${QUESTION}" from these sources alone:\n\n${listed.join('\n')}`)
return { answer, rounds: round, sources: seen.size }
