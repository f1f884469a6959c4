// Where pages have what they show from: the service, or what a page of a file holds.

import { koi, KoiError, listen } from "../api.js";

const PAGE = 500;
const of = (id, ...parts) => ["/dev/runs", encodeURIComponent(id), ...parts].join("/");
const get = (path, query) => koi.transport.send("GET", path, query);
const post = (path, body = {}) => koi.transport.send("POST", path, {}, body);
const program = (name, what) => get(`/dev/program/${encodeURIComponent(name)}/${what}`);

/** The service at the address of the page. */
export function remoteData() {
  return {
    isFile: false,
    login: (token) => koi.login({ token }),
    status: () => koi.status(),
    program: () => koi.program(),
    runs: (values) => get("/dev/runs", values),
    run: (id) => get(of(id)),
    entries: (id, since) => get(of(id, "entries"), { since, limit: PAGE }),
    source: (id) => get(of(id, "source")),
    graph: (id) => get(of(id, "graph")),
    audit: (id) => get(of(id, "audit")),
    tree: (id) => get(of(id, "tree")),
    diff: (id, other) => get(of(id, "diff"), { with: other }),
    replay: (id) => post(of(id, "replay")),
    keepTest: (id, name) => post(of(id, "test"), { name }),
    preview: (id, at) => get(of(id, "branch-preview"), { at }),
    branch: (run, body) => (run.hosted ? koi.run(run.id).branch(body) : post(of(run.id, "branch"), body)),
    playbook: (id, handler, entry) => get(of(id, "playbook"), { handler, entry }),
    branchEdited: (id, body) => post(of(id, "branch"), body),
    settleEdit: (id, keep) => post(of(id, "edit"), { keep }),
    // `answer`, `approve`, `steer`, `pause`, `continue` or `cancel`.
    act: (id, operation, body) => koi.run(id)[operation](body),
    start: (body) => koi.runs.start(body),
    programSource: (name) => program(name, "source"),
    programGraph: (name) => program(name, "graph"),
    programAudit: (name) => program(name, "audit"),
    exportAddress: (id) => koi.transport.address(of(id, "page.html")).href,
    follow: (id, since, take) => followEvents(id, since, take),
  };
}

/** Messages of a run as they come, over breaks of the connection; gives what ends that. */
function followEvents(id, since, take) {
  const stream = listen(id, take, (state, error) => take({ type: "connection", open: state === "open", error }), { since });
  return () => stream.close();
}

/** What a page that is a file holds: one run, which does not change any more. */
export function fileData(held) {
  const of = (value) => () => (value ? Promise.resolve(value) : Promise.reject(missing()));
  return {
    isFile: true,
    run: of({ ...held.run, header: held.header }),
    entries: (_, since) => Promise.resolve({
      entries: held.entries.filter((entry) => entry.n > since), last: held.entries.length, more: false,
    }),
    source: of(held.source),
    graph: of(held.graph),
    tree: of(held.tree),
  };
}

function missing() {
  return new KoiError("the file does not hold this", { code: "not_in_file" });
}
