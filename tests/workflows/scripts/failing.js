export const meta = { name: 'failing', description: 'What throws becomes null, in a stage and in a pipeline' }
const halves = await parallel([
  async () => { throw new TypeError('the first') },
  () => agent('the second'),
  () => null.field,
  async () => (await agent('the fourth')).length > 0,
])
const steps = await pipeline(
  [1, 2, 3, 4],
  n => { if (n === 2) throw new RangeError('two'); return n * 10 },
  async (tens, n, index) => ({ tens, n, index, said: await agent(`say ${tens}`) }),
  one => one.n === 4 ? Promise.reject(new Error('four')) : one,
)
return { halves: halves.map(h => h === null ? 'null' : typeof h), steps }
