/** Where the command `koi` is. */

/** What is asked of the machine. */
export interface Machine {
  /** Folders of the workspace, the first one that has an environment counts. */
  readonly folders: readonly string[]
  readonly platform: NodeJS.Platform
  isFile(path: string): boolean
  join(...parts: string[]): string
}

/** The command: what the setting names, else that of an environment in the workspace, else that of the `PATH`. */
export function findKoi(setting: string, machine: Machine): string {
  const chosen = setting.trim()
  if (chosen !== "") return chosen
  const [bin, name] = machine.platform === "win32" ? ["Scripts", "koi.exe"] : ["bin", "koi"]
  const places = machine.folders.flatMap(folder => [".venv", "venv"].map(each => machine.join(folder, each, bin, name)))
  return places.find(place => machine.isFile(place)) ?? "koi"
}
