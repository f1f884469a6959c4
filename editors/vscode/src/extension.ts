/** What the editor calls: starts the language server, the debugger and the tree of tests, and carries out commands. */

import { statSync } from "node:fs"
import * as path from "node:path"
import * as vscode from "vscode"
import { LanguageClient, TransportKind } from "vscode-languageclient/node"

import { findKoi } from "./command"
import { createExplorer } from "./explorer"
import { completed, type Launch } from "./launch"
import { lensOf, wordsFor } from "./lenses"

let client: LanguageClient | undefined

/** Called once, when a program is opened first. Nothing of a workspace that is not trusted is run. */
export async function activate(context: vscode.ExtensionContext): Promise<void> {
  if (vscode.workspace.isTrusted) return start(context)
  context.subscriptions.push(vscode.workspace.onDidGrantWorkspaceTrust(() => start(context)))
}

/** Called when the editor is closed. */
export async function deactivate(): Promise<void> {
  await client?.stop()
}

async function start(context: vscode.ExtensionContext): Promise<void> {
  const debugging: vscode.DebugAdapterDescriptorFactory & vscode.DebugConfigurationProvider = {
    createDebugAdapterDescriptor: () => new vscode.DebugAdapterExecutable(koi(), ["debug"]),
    resolveDebugConfiguration: (folder, given) => completed(given, openProgram()?.fsPath, folder?.uri.fsPath),
  }
  context.subscriptions.push(
    vscode.debug.registerDebugAdapterDescriptorFactory("koi", debugging),
    vscode.debug.registerDebugConfigurationProvider("koi", debugging),
    vscode.commands.registerCommand("koi.run", given => runTask("run", given)),
    vscode.commands.registerCommand("koi.test", given => runTask("test", given)),
    vscode.commands.registerCommand("koi.audit", given => runTask("audit", given)),
    vscode.commands.registerCommand("koi.debug", debug),
    vscode.commands.registerCommand("koi.restart", restart),
    createExplorer(koi),
  )
  await restart()
}

/** Start the language server, with the settings as they are now. */
async function restart(): Promise<void> {
  await client?.stop()
  const server = { command: koi(), args: ["lsp"], transport: TransportKind.stdio }
  client = new LanguageClient("koi", "Koi", server, { documentSelector: [{ language: "koi" }] })
  try {
    await client.start()
  } catch (error) {
    client = undefined
    const why = error instanceof Error ? error.message : String(error)
    void vscode.window.showWarningMessage(`\`koi lsp\` does not start: ${why}. Install Koi, or set \`koi.path\`.`)
  }
}

function koi(): string {
  return findKoi(vscode.workspace.getConfiguration("koi").get("path", ""), {
    folders: (vscode.workspace.workspaceFolders ?? []).map(folder => folder.uri.fsPath),
    platform: process.platform,
    isFile: place => statSync(place, { throwIfNoEntry: false })?.isFile() ?? false,
    join: path.join,
  })
}

function openProgram(): vscode.Uri | undefined {
  const document = vscode.window.activeTextEditor?.document
  return document?.languageId === "koi" ? document.uri : undefined
}

/** The file that a command is about, saved: that of its lens or menu, else the one that is open. */
async function programOf(given: unknown): Promise<vscode.Uri | undefined> {
  const lens = lensOf(given)
  const uri = lens ? vscode.Uri.parse(lens.uri) : given instanceof vscode.Uri ? given : openProgram()
  if (uri === undefined) void vscode.window.showInformationMessage("Open a program first: a file that ends with .koi.")
  const document = vscode.workspace.textDocuments.find(each => each.uri.toString() === uri?.toString())
  await document?.save()
  return uri
}

async function runTask(command: "run" | "test" | "audit", given: unknown): Promise<void> {
  const uri = await programOf(given)
  if (uri === undefined) return
  const folder = vscode.workspace.getWorkspaceFolder(uri)
  const words = wordsFor(command, uri.fsPath, lensOf(given)?.target)
  // Words, not a line for a shell: names of files and tests may hold anything.
  const cwd = folder?.uri.fsPath ?? path.dirname(uri.fsPath)
  const execution = new vscode.ProcessExecution(koi(), words, { cwd })
  const scope = folder ?? vscode.TaskScope.Workspace
  await vscode.tasks.executeTask(new vscode.Task({ type: "koi", command }, scope, `${command} ${path.basename(uri.fsPath)}`, "koi", execution))
}

async function debug(given: unknown): Promise<void> {
  const uri = await programOf(given)
  if (uri === undefined) return
  const launch: Launch = { type: "koi", request: "launch", name: path.basename(uri.fsPath), program: uri.fsPath }
  await vscode.debug.startDebugging(vscode.workspace.getWorkspaceFolder(uri), launch)
}
