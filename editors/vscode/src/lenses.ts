/** What the lenses above declarations ask for, to words of a command line. */

/** The argument of `koi.run`, `koi.debug`, `koi.test` and `koi.audit`; from a menu there is none, or the file alone. */
export interface Lens {
  readonly uri: string
  /** `Agent.handler`, or the name of a test. */
  readonly target?: string | undefined
}

/** The lens that a command was called with; undefined where it was called with something else, or with nothing. */
export function lensOf(given: unknown): Lens | undefined {
  if (typeof given !== "object" || given === null || !("uri" in given)) return undefined
  const { uri } = given
  const target = "target" in given && typeof given.target === "string" ? given.target : undefined
  return typeof uri === "string" ? { uri, target } : undefined
}

/** The words behind `koi` that run a program, its tests, or one test. */
export function wordsFor(command: "run" | "test" | "audit", file: string, target?: string): string[] {
  return [command, command === "test" && target ? `${file}::${target}` : file]
}
