export const meta = { name: 'throwing', description: 'Ends with an error of its own' }
const plan = await agent('make a plan')
if (plan.length > 0) throw new Error(`no plan today: ${plan.length > 3}`)
return plan
