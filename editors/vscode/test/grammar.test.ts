/** What pieces of programs are to the TextMate grammar. */

import assert from "node:assert/strict"
import { readdirSync, readFileSync } from "node:fs"
import * as path from "node:path"
import { test } from "node:test"

import { piecesOf } from "./scopes"

/** A program with one piece in «…», and the scope that it has; `-` before a scope that it has not. */
const PIECES: readonly (readonly [string, string])[] = [
  ["// «a comment»", "comment.line.double-slash.koi"],
  ["/** «what it is for» */", "comment.block.documentation.koi"],
  ["«role» Worker { can execute }", "storage.type.koi"],
  ["role «Worker» { can execute }", "entity.name.type.role.koi"],
  ["role Worker { can «registry:read» }", "variable.other.enummember.permission.koi"],
  ["«AGENT» Library : Worker {", "storage.type.koi"],
  ["agent «Library» : Worker {", "entity.name.type.agent.koi"],
  ["agent Library : «Worker» {", "entity.other.inherited-class.koi"],
  ["  private on «lend»(args: Json) {", "entity.name.function.koi"],
  ["  «private» on lend(args: Json) {", "storage.modifier.koi"],
  ["  on lend(args: { title: «string» }) {", "support.type.primitive.koi"],
  ["  uses «skill» Files", "storage.type.koi"],
  ["  «amnesia» = true", "keyword.other.member.koi"],
  ["  «state» { count = 0 }", "keyword.other.member.koi"],
  ["  const { «role», content } = message", "-storage.type.koi"],
  ["  const «test» = agent.team", "-storage.type.koi"],
  ["  const test = agent.«team»", "variable.other.property.koi"],
  ["  «state» = 3", "-keyword.other.member.koi"],
  ["  «run»(1)", "entity.name.function.koi"],
  ["  const r = await «send» peers.event(\"review\").any()({})", "keyword.control.koi"],
  ["  const r = await send «peers».event(\"review\").any()({})", "support.variable.koi"],
  ["  await send peers.event(\"x\").any()({}) timeout «5s»", "constant.numeric.duration.koi"],
  ["  const x = /«a+[/]b»/gi.test(y)", "string.regexp.koi"],
  ["  return x / «2» / 3", "constant.numeric.koi"],
  ["  const text = `Hello ${«name»}`", "variable.other.readwrite.koi"],
  ["  const text = \"a«\\n»b\"", "constant.character.escape.koi"],
  ["prompt «Polite»(name: string) = \"\"\"", "variable.other.constant.koi"],
  ["playbook \"\"\"\n  Ask the «user».\n\"\"\"", "meta.prose.koi"],
  ["playbook \"\"\"\n  Say «{{»args.title}}.\n\"\"\"", "punctuation.definition.template-expression.begin.koi"],
  ["playbook \"\"\"\n  Say {{args.«title»}}.\n\"\"\"", "variable.other.property.koi"],
  ["playbook \"Say ${«name».output}.\"", "meta.embedded.koi"],
  ["playbook \"\"\"\n  Then «prompt_user» about it.\n\"\"\"", "support.function.action.koi"],
  ["playbook \"\"\"\n  { \"intent\": «\"print\"», \"message\": \"x\" }\n\"\"\"", "support.function.action.koi"],
  ["playbook \"\"\"\n  { «\"actionType\"»: \"direct\" }\n\"\"\"", "support.type.property-name.koi"],
  ["playbook \"\"\"\n  [{ intent: «\"desk::count\"» }]\n\"\"\"", "support.function.action.koi"],
  ["playbook \"\"\"\n  Return { greeted: «<name>» }\n\"\"\"", "markup.italic.koi"],
  ["playbook \"\"\"\n  A { brace: \"x\n\"\"\"\n«return» 1", "keyword.control.koi"],
  ["playbook \"\"\"\"\n  \"\"\"three\"\"\" «quotes»\n\"\"\"\"", "meta.prose.koi"],
  ["prompt Empty = \"\"\"\"\"\"\n«role» A { can execute }", "storage.type.koi"],
  ["export prompt P = «compose» (A) { fragments: { a: A } template: \"a\" }", "keyword.other.clause.koi"],
  ["«test» \"adds\" {", "storage.type.koi"],
  ["  expect Host.x({}) «fails» \"no\"", "keyword.other.testing.koi"],
  ["  «needs» write export function f() { }", "storage.modifier.koi"],
  ["import «Rules» : prompt from \"./rules.md\"", "entity.name.type.koi"],
  ["team Shelf { reader: «mcp://files/read» }", "string.unquoted.address.koi"],
  ["«run» Library.lend({})", "storage.type.koi"],
]

for (const [marked, scope] of PIECES) {
  test(`${marked.trim().replaceAll("\n", "⏎")} is ${scope}`, async () => {
    const [before, text = ""] = marked.split(/[«»]/)
    const line = (before ?? "").split("\n").length - 1
    const start = (before ?? "").split("\n").at(-1)?.length ?? 0
    const pieces = (await piecesOf(marked.replace(/[«»]/g, "")))[line] ?? []
    let reached = 0
    const at = pieces.filter(piece => (reached += piece.text.length) > start && reached - piece.text.length < start + text.length)

    const scopes = at.map(piece => piece.scopes.join(" "))
    const wanted = scope.replace(/^-/, "")
    assert.notEqual(scopes.length, 0)
    for (const found of scopes) assert.equal(found.split(" ").includes(wanted), !scope.startsWith("-"), found)
  })
}

test("no text of an example runs on to the end of its file", async () => {
  const examples = path.join(process.cwd(), "../../examples")
  const files = readdirSync(examples).filter(name => name.endsWith(".koi"))
  assert.notEqual(files.length, 0)
  for (const name of files) {
    const lines = await piecesOf(`${readFileSync(path.join(examples, name), "utf8")}\nrole`)
    assert.deepEqual(lines.at(-1)?.[0]?.scopes.slice(1).filter(scope => /string|comment|meta/.test(scope)), [], name)
  }
})
