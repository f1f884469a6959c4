const words = (args.words ?? 'red green blue').split(/\s+/)
const lines = []
for await (const line of words.map(word => agent(`A line about ${word}.`))) lines.push(line)
return lines.join(' / ')
