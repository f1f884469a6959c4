export const meta = { name: 'migrate', description: 'Move files to a new interface, one after the other, each checked' }
const targets = args.targets || ['a.py', 'b.py', 'sub/c.py', 'odd.py']
const DONE = { type: 'object', properties: { changed: { type: 'boolean' }, notes: { type: 'array', items: { type: 'string' } } }, required: ['changed', 'notes'] }
const done = [], failed = []
for (const [index, target] of targets.entries()) {
  try {
    if (target.startsWith('odd')) throw new Error(`cannot move ${target}`)
    const result = await agent(`Move ${target} (${index + 1}/${targets.length}) to the new interface.`, { label: target, schema: DONE })
    if (!result) { failed.push({ target, why: 'no result' }); continue }
    const check = await agent(`Run the tests of ${target}. Say PASS or FAIL. Notes:\n${JSON.stringify(result.notes, null, 2)}`)
    done.push({ target, changed: result.changed, passed: /pass/i.test(check) })
  } catch (error) {
    failed.push({ target, why: error.message })
  }
}
const summary = `${done.length} moved, ${failed.length} failed`
log(summary.padStart(30, '.'))
return { summary, done, failed, share: Number((done.length / targets.length).toFixed(2)) }
