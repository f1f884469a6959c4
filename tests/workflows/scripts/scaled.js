export const meta = { name: 'scaled', description: 'As many agents as the budget has room for' }
const wanted = budget.total === null ? 3 : Math.max(1, Math.floor(budget.total / 10_000))
const left = budget.remaining()
const ideas = await parallel(Array.from({ length: wanted }, (_, i) => () => agent(`Idea ${i + 1} of ${wanted}`, { model: i ? 'haiku' : 'opus', label: `idea ${i}` })))
const best = await agent(['Choose one:', ...ideas.map((idea, i) => `${String.fromCharCode(65 + i)}) ${idea}`)].join('\n'), { model: 'sonnet', effort: 'high' })
return { best, wanted, unlimited: left === Infinity, spent: budget.spent() >= 0 }
