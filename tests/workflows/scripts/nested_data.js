export const meta = { name: 'nested-data', description: 'Values of many shapes' }
const SHAPE = {
  type: 'object',
  properties: {
    name: { type: ['string', 'null'] },
    tags: { type: 'array', items: { type: 'string' }, minItems: 1 },
    size: { anyOf: [{ type: 'integer' }, { type: 'string' }] },
    where: { $ref: '#/$defs/Place' },
    extra: { type: 'object', additionalProperties: { type: 'number' } },
  },
  required: ['name', 'tags', 'where'],
  additionalProperties: false,
  $defs: { Place: { type: 'object', properties: { city: { type: 'string' }, zip: { type: 'integer' } }, required: ['city'] } },
}
const one = await agent('describe it', { schema: SHAPE })
const { name = 'unnamed', tags: [first, ...rest], where: { city, zip = 0 } } = one
const copy = structuredClone(one)
copy.tags.push('more')
const table = Object.entries(one).map(([key, value]) => `${key.padEnd(6)}|${Array.isArray(value) ? value.length : typeof value}`)
const groups = ['x1', 'y2', 'x3'].reduce((all, id) => { (all[id[0]] ??= []).push(id); return all }, {})
switch (first?.[0]) {
  case undefined: log('no tag'); break
  case 'a': case 'b': log('early'); break
  default: log('late')
}
return { name, first, rest, city, zip, same: JSON.stringify(one) === JSON.stringify(copy), table, groups, n: [3, 1, 2].toSorted() }
