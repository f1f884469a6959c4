/** What the extension does without the editor. */

import assert from "node:assert/strict"
import { posix } from "node:path"
import { test } from "node:test"

import { findKoi } from "../src/command"
import { completed } from "../src/launch"
import { lensOf, wordsFor } from "../src/lenses"
import { byFile, idOf, RecordReader, type TestPlace } from "../src/testRecords"

const machine = (...files: string[]) => ({
  folders: ["/a", "/b"],
  platform: "linux" as const,
  isFile: (place: string) => files.includes(place),
  join: posix.join,
})

test("the setting names the command, then an environment of the workspace, then the PATH", () => {
  assert.equal(findKoi(" /opt/koi ", machine("/a/.venv/bin/koi")), "/opt/koi")
  assert.equal(findKoi("", machine("/b/.venv/bin/koi")), "/b/.venv/bin/koi")
  assert.equal(findKoi("", machine("/a/venv/bin/koi", "/b/.venv/bin/koi")), "/a/venv/bin/koi")
  assert.equal(findKoi("", machine()), "koi")
  assert.equal(findKoi("", { ...machine("/a/.venv/Scripts/koi.exe"), platform: "win32" }), "/a/.venv/Scripts/koi.exe")
})

test("a lens names a file and what of it, a menu nothing that is a lens", () => {
  assert.deepEqual(lensOf({ uri: "file:///a.koi", target: "A.b" }), { uri: "file:///a.koi", target: "A.b" })
  assert.deepEqual(lensOf({ uri: "file:///a.koi", target: 3 }), { uri: "file:///a.koi", target: undefined })
  for (const other of [undefined, null, "file:///a.koi", { path: "/a.koi" }, { uri: 3 }]) assert.equal(lensOf(other), undefined)
})

test("a test is named as the command line names it, a program by its file alone", () => {
  assert.deepEqual(wordsFor("test", "/a.test.koi", "adds \"2\""), ["test", "/a.test.koi::adds \"2\""])
  assert.deepEqual(wordsFor("run", "/a.koi", "A.b"), ["run", "/a.koi"])
  assert.deepEqual(wordsFor("audit", "/a.koi"), ["audit", "/a.koi"])
})

test("an empty configuration debugs the open program, and nothing where none is open", () => {
  const launch = { type: "koi", request: "launch", name: "Koi", program: "/a/x.koi", cwd: "/a" }
  assert.deepEqual(completed({}, "/a/x.koi", "/a"), launch)
  assert.equal(completed({}, undefined, "/a"), undefined)
})

test("a configuration keeps what it says, and one of a recorded run gets no program", () => {
  const given = { type: "koi", request: "launch", name: "back", run: "last", cwd: "/c" }
  assert.deepEqual(completed(given, "/a/x.koi", "/a"), given)
})

test("records are read however the output is cut, and other lines are left out", () => {
  const places = [{ file: "/a", line: 1, name: "é" }, { file: "/a", line: 2, name: "" }, { file: "/b", line: 1, name: "x" }]
  const text = places.map(place => JSON.stringify(place)).join("\nno record\n{\"file\": 3}\n") + "\n{\"file\""
  for (let size = 1; size < text.length; size += 7) {
    const reader = new RecordReader<TestPlace>()
    const found: TestPlace[] = []
    for (let at = 0; at < text.length; at += size) found.push(...reader.read(text.slice(at, at + size)))
    assert.deepEqual(found, places)
  }
  assert.deepEqual([...byFile(places)].map(([file, tests]) => [file, tests.map(idOf)]), [["/a", ["/a::é", "/a"]], ["/b", ["/b::x"]]])
})
