/** The seam to the editor: what is registered, and tests that are run by the real `koi` where `KOI` names it. */

import assert from "node:assert/strict"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after, before, test } from "node:test"

import { activate, deactivate } from "../src/extension"
import { started } from "./languageClient"
import { executed, folders, registered, Uri, workspace } from "./vscode"

const folder = mkdtempSync(join(tmpdir(), "koi "))
const file = join(folder, "a.test.koi")
const koi = process.env.KOI ?? "koi"

before(async () => {
  writeFileSync(file, 'test "adds" { expect 1 + 1 == 2 }\ntest "fails" {\n  console.log("é")\n  expect 1 == 2\n}\n')
  folders.push({ uri: Uri.file(folder) })
  await activate({ subscriptions: [] } as any)
})
after(() => rmSync(folder, { recursive: true }))

test("nothing is started before the workspace is trusted, and then everything", async () => {
  assert.deepEqual([registered.has("koi.run"), started], [false, []])
  workspace.isTrusted = true
  await registered.get("trust")()

  assert.deepEqual(started, [{ command: koi, args: ["lsp"], transport: 0 }])
  const { contributes } = JSON.parse(readFileSync("package.json", "utf8"))
  for (const { command } of contributes.commands) assert.ok(registered.has(command), command)
  const { command, args } = registered.get("adapter koi").createDebugAdapterDescriptor()
  assert.deepEqual([command, args], [koi, ["debug"]])
})

test("lenses run words, which no shell reads", async () => {
  await registered.get("koi.test")({ uri: `file://${file}`, target: "adds; $(rm)" })
  await registered.get("koi.debug")({ uri: `file://${file}` })

  const [task, launch] = executed
  assert.deepEqual([task.execution.process, task.execution.args], [koi, ["test", `${file}::adds; $(rm)`]])
  assert.equal(task.execution.options.cwd, folder)
  assert.deepEqual([launch.type, launch.program], ["koi", file])
})

test("the tree of tests is that of `koi test`, and so is what came of them", { skip: !process.env.KOI }, async () => {
  const controller = registered.get("koi")
  await controller.resolveHandler()
  const items = [...controller.items.get(file).children].map(([, item]: any) => [item.label, item.range.startLine])
  assert.deepEqual(items, [["adds", 0], ["fails", 1]])

  await registered.get("run tests")({ include: undefined }, { onCancellationRequested() {} })

  const told = controller.told.map(([what, first]: any) => [what, first?.label ?? first])
  assert.deepEqual(told.slice(0, 2), [["started", "adds"], ["started", "fails"]])
  assert.deepEqual(new Set(told.slice(2).map(String)), new Set(["passed,adds", "appendOutput,é\r\n", "failed,fails", "end,"]))
  const [, , message] = controller.told.find(([what]: any) => what === "failed")
  assert.match(message.message, /^error: the two sides are not equal/)
  assert.deepEqual([message.location.uri.fsPath, message.location.range.startLine], [file, 3])
})

test("the language server is stopped with the editor", async () => {
  await deactivate()
  assert.deepEqual(started, [])
})
