/** The tree of tests: `koi test --list --json` fills it, `koi test --json` runs what is chosen. */

import { spawn } from "node:child_process"
import * as path from "node:path"
import * as vscode from "vscode"

import { byFile, idOf, RecordReader, type TestPlace, type TestResult } from "./testRecords"

/** Shows the tests of all folders of the workspace, and finds them anew when a file of tests changes. */
export function createExplorer(koi: () => string): vscode.Disposable {
  const controller = vscode.tests.createTestController("koi", "Koi")
  const refresh = async () => {
    for (const folder of vscode.workspace.workspaceFolders ?? []) await discover(controller, koi(), folder.uri.fsPath)
  }
  controller.resolveHandler = async item => (item === undefined ? refresh() : undefined)
  controller.refreshHandler = refresh
  controller.createRunProfile(
    "Run", vscode.TestRunProfileKind.Run, (request, token) => run(controller, koi(), request, token), true,
  )
  const watcher = vscode.workspace.createFileSystemWatcher("**/*.test.koi")
  watcher.onDidChange(uri => discover(controller, koi(), uri.fsPath))
  watcher.onDidCreate(uri => discover(controller, koi(), uri.fsPath))
  watcher.onDidDelete(uri => controller.items.delete(uri.fsPath))
  return vscode.Disposable.from(controller, watcher)
}

/** Put the tests of a file or folder into the tree. */
async function discover(controller: vscode.TestController, koi: string, place: string): Promise<void> {
  const folder = vscode.workspace.getWorkspaceFolder(vscode.Uri.file(place))?.uri.fsPath ?? path.dirname(place)
  const found: TestPlace[] = []
  await follow<TestPlace>(koi, ["test", "--list", "--json", place], folder, record => found.push(record))
  const files = byFile(found)
  controller.items.forEach(({ id }) => {
    const isWithin = id === place || id.startsWith(place + path.sep)
    if (isWithin && !files.has(id)) controller.items.delete(id)
  })
  for (const [file, places] of files) controller.items.add(fileItem(controller, file, places))
}

function fileItem(controller: vscode.TestController, file: string, places: readonly TestPlace[]): vscode.TestItem {
  const uri = vscode.Uri.file(file)
  const item = controller.createTestItem(file, vscode.workspace.asRelativePath(uri), uri)
  for (const place of places.filter(({ name }) => name !== "")) {
    const test = controller.createTestItem(idOf(place), place.name, uri)
    test.range = lineRange(place.line)
    item.children.add(test)
  }
  return item
}

async function run(
  controller: vscode.TestController, koi: string, request: vscode.TestRunRequest, token: vscode.CancellationToken,
): Promise<void> {
  const asked = request.include ?? [...controller.items].map(([, item]) => item)
  const excluded = new Set(request.exclude ?? [])
  const chosen = asked.flatMap(leaves).filter(item => !excluded.has(item) && !(item.parent && excluded.has(item.parent)))
  const running = controller.createTestRun(request)
  const items = new Map(chosen.map(item => [item.id, item]))
  for (const item of chosen) running.started(item)
  for (const [folder, ids] of byFolder(chosen)) {
    const told = await follow<TestResult>(koi, ["test", "--json", ...ids], folder, result => {
      const item = items.get(idOf(result)) ?? items.get(result.file)
      if (item !== undefined) tell(running, item, result)
      items.delete(item?.id ?? "")
    }, token)
    if (told !== "") running.appendOutput(told.replaceAll("\n", "\r\n"))
  }
  for (const item of items.values()) running.skipped(item)
  running.end()
}

function leaves(item: vscode.TestItem): vscode.TestItem[] {
  return item.children.size === 0 ? [item] : [...item.children].flatMap(([, child]) => leaves(child))
}

/** Ids of tests by the folder of the workspace that they are run in. */
function byFolder(items: readonly vscode.TestItem[]): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const { id, uri } of items) {
    if (uri === undefined) continue
    const folder = vscode.workspace.getWorkspaceFolder(uri)?.uri.fsPath ?? path.dirname(uri.fsPath)
    found.set(folder, [...(found.get(folder) ?? []), id])
  }
  return found
}

function tell(running: vscode.TestRun, item: vscode.TestItem, result: TestResult): void {
  for (const line of result.printed) running.appendOutput(`${line}\r\n`, undefined, item)
  const milliseconds = result.seconds * 1000
  if (result.outcome === "passed") return running.passed(item, milliseconds)
  const message = new vscode.TestMessage(result.message ?? "the test failed")
  const at = result.at ?? result
  message.location = new vscode.Location(vscode.Uri.file(at.file), lineRange(at.line))
  running.failed(item, message, milliseconds)
}

function lineRange(line: number): vscode.Range {
  return new vscode.Range(line - 1, 0, line - 1, 0)
}

/** Run a command, hand on its records, and give what it wrote to stderr, or why it could not be started. */
function follow<T extends TestPlace>(
  koi: string, words: string[], cwd: string, take: (record: T) => void, token?: vscode.CancellationToken,
): Promise<string> {
  const reader = new RecordReader<T>()
  const child = spawn(koi, words, { cwd, stdio: ["ignore", "pipe", "pipe"] })
  let errors = ""
  child.stdout.setEncoding("utf8").on("data", piece => reader.read(piece).forEach(take))
  child.stderr.setEncoding("utf8").on("data", piece => (errors += piece))
  token?.onCancellationRequested(() => child.kill("SIGINT"))
  return new Promise(resolve => {
    child.on("error", error => resolve(`\`${koi}\` cannot be started: ${error.message}\n`))
    child.on("close", () => resolve(errors))
  })
}
