export const meta = { name: 'retries', description: 'Asks again until an answer is good enough' }
const GRADE = { type: 'object', properties: { score: { type: 'number' }, advice: { type: 'string' } }, required: ['score', 'advice'] }
async function improve(text, left = 3) {
  const grade = await agent(`Grade: ${text}`, { schema: GRADE, label: `grade ${left}` })
  if (grade.score >= 100 || left === 1) return { text, tries: 4 - left, score: Math.round(grade.score) }
  return improve(await agent(`Improve "${text}". ${grade.advice}`), left - 1)
}
const drafts = ['short', 'a longer draft']
const improved = await Promise.all(drafts.map(draft => improve(draft)))
const { tries, ...rest } = improved[0]
return { improved, tries, keys: Object.keys(rest), all: improved.every(i => i.tries === 3) }
