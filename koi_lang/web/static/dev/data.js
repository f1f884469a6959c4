// Where pages have what they show from: the service, or what a page of a file holds.

import { command, get, listen, post, ServiceError } from "../api.js";

const PAGE = 500;
const of = (id) => `api/dev/runs/${encodeURIComponent(id)}`;
const program = (name, what) => get(`api/dev/program/${encodeURIComponent(name)}/${what}`);

function query(values) {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== "" && value !== null);
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

/** The service at the address of the page. */
export function remoteData() {
  return {
    isFile: false,
    login: (token) => post("api/login", { token }),
    status: () => get("api/status"),
    program: () => get("api/program"),
    runs: (values) => get(`api/dev/runs${query(values)}`),
    run: (id) => get(of(id)),
    entries: (id, since) => get(`${of(id)}/entries${query({ since, limit: PAGE })}`),
    source: (id) => get(`${of(id)}/source`),
    graph: (id) => get(`${of(id)}/graph`),
    audit: (id) => get(`${of(id)}/audit`),
    tree: (id) => get(`${of(id)}/tree`),
    diff: (id, other) => get(`${of(id)}/diff${query({ with: other })}`),
    replay: (id) => post(`${of(id)}/replay`),
    preview: (id, at) => get(`${of(id)}/branch-preview${query({ at })}`),
    branch: (run, body) => post(`${run.hosted ? `api/runs/${encodeURIComponent(run.id)}` : of(run.id)}/branch`, body),
    command,
    start: (body) => post("api/runs", body),
    programSource: (name) => program(name, "source"),
    programGraph: (name) => program(name, "graph"),
    programAudit: (name) => program(name, "audit"),
    exportAddress: (id) => `${of(id)}/page.html`,
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
  return new ServiceError(0, { code: "not_in_file", message: "the file does not hold this" });
}
