// A comment before everything else.
export const meta = {
  name: "helpers",
  description: `Functions, closures and texts`,
}

const quote = text => '> ' + String(text).split('\n').join('\n> ')
const chunk = (list, size) => list.length ? [list.slice(0, size), ...chunk(list.slice(size), size)] : []
function* numbers(from, to) { for (let n = from; n <= to; n++) yield n }
const counter = (() => { let count = 0; return { next: () => ++count, get value() { return count } } })()
const TICKETS = [...numbers(1, 7)].map(n => ({ id: `T-${String(n).padStart(3, '0')}`, points: (n * 7) % 5 }))

const said = []
for (const group of chunk(TICKETS, 3)) {
  counter.next()
  const text = await agent(`Group ${counter.value}:\n${quote(group.map(t => `${t.id} (${t.points})`).join('\n'))}`, { label: `group ${counter.value}` })
  said.push(text)
  if (said.length >= (args?.most ?? 10)) break
}
const total = TICKETS.reduce((sum, { points }) => sum + points, 0)
const [longest = ''] = [...said].sort((a, b) => b.length - a.length)
return `${said.length} groups, ${total} points, ${counter.value} calls; longest ${longest.length > 0 ? 'known' : 'unknown'}; ${'ab'.repeat(2)}`
