/** Configurations of the debugger. */

/** A configuration, as `launch.json` has it. */
export type Launch = Record<string, unknown> & { type: string; name: string; request: string }

/** A configuration with what it leaves out: of an empty one, the program that is open. */
export function completed(given: Partial<Launch>, open: string | undefined, folder: string | undefined): Launch | undefined {
  const isEmpty = given.type === undefined && given.request === undefined && given.name === undefined
  if (isEmpty && open === undefined) return undefined
  const launch: Launch = { ...given, type: "koi", request: given.request ?? "launch", name: given.name ?? "Koi" }
  if (launch.program === undefined && launch.run === undefined && open !== undefined) launch.program = open
  if (launch.cwd === undefined && folder !== undefined) launch.cwd = folder
  return launch
}
