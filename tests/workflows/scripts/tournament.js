export const meta = { name: 'tournament', description: 'Drafts meet in pairs until one is left' }
const topics = ['slogan', 'headline']
const PICK = { type: 'object', properties: { winner: { enum: ['A', 'B'] }, margin: { type: 'integer', minimum: 0, maximum: 10 } }, required: ['winner', 'margin'] }
const champion = async topic => {
  let field = await parallel([...Array(4).keys()].map(n => () => agent(`Draft ${n + 1} of a ${topic}.`)))
  let stage = 1
  while (field.length > 1) {
    const pairs = []
    field.forEach((each, i) => i % 2 ? pairs.at(-1).push(each) : pairs.push([each]))
    field = await parallel(pairs.map(([a, b], n) => async () => {
      if (b === undefined) return a
      const { winner } = await agent(`Stage ${stage}, pair ${n}: which ${topic} is better?\nA: ${a}\nB: ${b}`, { schema: PICK })
      return winner === 'A' ? a : b
    }))
    stage++
  }
  return field[0]
}
const winners = await Promise.all(topics.map(champion))
return Object.assign({}, ...winners.map((text, i) => ({ [topics[i]]: text })))
