/** As much of the module `vscode` as the extension calls: it keeps what is registered, so that tests can use it. */

import { mock } from "node:test"

type Callback = (...given: any[]) => any

export const registered = new Map<string, any>()
export const folders: { uri: Uri }[] = []
export const documents: any[] = []
export const executed: any[] = []

export class Uri {
  private constructor(readonly fsPath: string) {}
  static file = (path: string) => new Uri(path)
  static parse = (text: string) => new Uri(decodeURIComponent(text.replace("file://", "")))
  toString = () => `file://${this.fsPath}`
}

export class Disposable {
  static from = (...given: { dispose(): void }[]) => new Disposable(() => given.forEach(each => each.dispose()))
  constructor(readonly dispose: () => void = () => {}) {}
}

export class Range {
  constructor(readonly startLine: number, readonly start: number, readonly endLine: number, readonly end: number) {}
}
export class Location {
  constructor(readonly uri: Uri, readonly range: Range) {}
}
export class TestMessage {
  location: Location | undefined
  constructor(readonly message: string) {}
}
export class ProcessExecution {
  constructor(readonly process: string, readonly args: string[], readonly options: { cwd: string }) {}
}
export class Task {
  constructor(readonly definition: object, readonly scope: any, readonly name: string, readonly source: string, readonly execution: ProcessExecution) {}
}
export class DebugAdapterExecutable {
  constructor(readonly command: string, readonly args: string[]) {}
}
export const TaskScope = { Workspace: 2 }
export const TestRunProfileKind = { Run: 1 }

class Items {
  private readonly items = new Map<string, any>()
  get size() { return this.items.size }
  add(item: any) { this.items.set(item.id, item) }
  delete(id: string) { this.items.delete(id) }
  get(id: string) { return this.items.get(id) }
  forEach(each: Callback) { this.items.forEach(item => each(item)) }
  [Symbol.iterator]() { return this.items.entries() }
}

function item(id: string, label: string, uri: Uri) {
  const made: any = { id, label, uri, children: new Items() }
  const add = made.children.add.bind(made.children)
  made.children.add = (child: any) => add(Object.assign(child, { parent: made }))
  return made
}

export const tests = {
  createTestController(id: string) {
    const told: any[] = []
    const note = (what: string) => (...given: any[]) => told.push([what, ...given])
    const run = { ...Object.fromEntries(["started", "passed", "failed", "skipped", "appendOutput", "end"].map(each => [each, note(each)])) }
    const controller = {
      items: new Items(), told, dispose() {}, createTestItem: item, createTestRun: () => run,
      createRunProfile: (_: string, __: number, carryOut: Callback) => registered.set("run tests", carryOut),
    }
    registered.set(id, controller)
    return controller
  },
}
const keep = (kind: string) => (name: string, value: any) => {
  registered.set(`${kind}${name}`, value)
  return new Disposable()
}
export const commands = { registerCommand: keep("") }
export const debug = {
  registerDebugAdapterDescriptorFactory: keep("adapter "),
  registerDebugConfigurationProvider: keep("configuration "),
  startDebugging: mock.fn(async (_: any, launch: any) => executed.push(launch)),
}
export const tasks = { executeTask: async (task: Task) => executed.push(task) }
export const window: any = { activeTextEditor: undefined, showInformationMessage: mock.fn(), showWarningMessage: mock.fn() }
export const workspace: any = {
  isTrusted: false,
  workspaceFolders: folders,
  textDocuments: documents,
  onDidGrantWorkspaceTrust: (start: Callback) => registered.set("trust", start),
  getConfiguration: () => ({ get: () => process.env.KOI ?? "" }),
  asRelativePath: (uri: Uri) => uri.fsPath,
  getWorkspaceFolder: (uri: Uri) => folders.find(folder => uri.fsPath.startsWith(folder.uri.fsPath)),
  createFileSystemWatcher: () => ({ onDidChange() {}, onDidCreate() {}, onDidDelete() {}, dispose() {} }),
}
