/** Programs to the scopes of their pieces, by the engine that VS Code has. */

import { readFileSync } from "node:fs"
import * as path from "node:path"
import { loadWASM, OnigScanner, OnigString } from "vscode-oniguruma"
import { INITIAL, Registry, type IGrammar } from "vscode-textmate"

/** A piece of a line with its scopes, the outermost first. */
export interface Piece {
  readonly text: string
  readonly scopes: readonly string[]
}

const ROOT = process.cwd()
let grammar: Promise<IGrammar> | undefined

/** The pieces of a program, line by line. */
export async function piecesOf(code: string): Promise<Piece[][]> {
  const koi = await (grammar ??= load())
  let stack = INITIAL
  return code.split("\n").map(line => {
    const { tokens, ruleStack } = koi.tokenizeLine(line, stack)
    stack = ruleStack
    return tokens.map(({ startIndex, endIndex, scopes }) => ({ text: line.slice(startIndex, endIndex), scopes }))
  })
}

async function load(): Promise<IGrammar> {
  await loadWASM(readFileSync(path.join(ROOT, "node_modules/vscode-oniguruma/release/onig.wasm")))
  const registry = new Registry({
    onigLib: Promise.resolve({
      createOnigScanner: patterns => new OnigScanner(patterns),
      createOnigString: text => new OnigString(text),
    }),
    loadGrammar: async () => JSON.parse(readFileSync(path.join(ROOT, "syntaxes/koi.tmLanguage.json"), "utf8")),
  })
  const koi = await registry.loadGrammar("source.koi")
  if (koi === null) throw new Error("there is no grammar")
  return koi
}
