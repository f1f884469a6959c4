/** The lines of `koi test --json` to records. */

/** Where a test is; lines count from 1, and a name is empty for a file as a whole. */
export interface TestPlace {
  readonly file: string
  readonly line: number
  readonly name: string
}

/** What came of a test. */
export interface TestResult extends TestPlace {
  readonly outcome: "passed" | "failed"
  readonly seconds: number
  readonly printed: readonly string[]
  readonly message?: string
  readonly at?: { readonly file: string; readonly line: number } | null
}

/** Takes pieces of output as they arrive and gives a record for each whole line; what is no record is left out. */
export class RecordReader<T extends TestPlace> {
  private rest = ""

  read(piece: string): T[] {
    const lines = (this.rest + piece).split("\n")
    this.rest = lines.pop() ?? ""
    return lines.map(line => parsed<T>(line)).filter(record => record !== undefined)
  }
}

/** How one test is named on the command line, and in the tree of tests. */
export function idOf({ file, name }: TestPlace): string {
  return name === "" ? file : `${file}::${name}`
}

/** The tests of each file, in their order. */
export function byFile<T extends TestPlace>(places: readonly T[]): Map<string, T[]> {
  const found = new Map<string, T[]>()
  for (const place of places) found.set(place.file, [...(found.get(place.file) ?? []), place])
  return found
}

function parsed<T extends TestPlace>(line: string): T | undefined {
  try {
    const record = JSON.parse(line)
    return typeof record?.file === "string" && typeof record.name === "string" ? record : undefined
  } catch {
    return undefined
  }
}
