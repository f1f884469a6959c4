// Made from the OpenAPI document of the service by `python -m docs.generate`.

import { encodePath, withKey } from "./transport.js";

/** The operations of a run. */
export class RunOperations {
  constructor(transport) {
    this.transport = transport;
  }

  /** A run, and how its last call ended. */
  get(options) { return this.transport.send("GET", `/runs/${encodeURIComponent(this.id)}`, options); }
  /** Remove a run, its journal and its files. */
  delete(options) { return this.transport.send("DELETE", `/runs/${encodeURIComponent(this.id)}`, options); }
  /** Begin the call that a message is. */
  sendMessage(body, options) { return this.transport.send("POST", `/runs/${encodeURIComponent(this.id)}/messages`, withKey(options), body); }
  /** Begin the call of a handler. */
  callHandler(body, options) { return this.transport.send("POST", `/runs/${encodeURIComponent(this.id)}/calls`, withKey(options), body); }
  /** End what is under way, with all it started. */
  cancel(options) { return this.transport.send("POST", `/runs/${encodeURIComponent(this.id)}/cancel`, options); }
  /** Have the next request to a model wait. */
  pause(options) { return this.transport.send("POST", `/runs/${encodeURIComponent(this.id)}/pause`, options); }
  /** End a pause. */
  continue(options) { return this.transport.send("POST", `/runs/${encodeURIComponent(this.id)}/continue`, options); }
  /** Say something to who works. */
  steer(body, options) { return this.transport.send("POST", `/runs/${encodeURIComponent(this.id)}/steer`, options, body); }
  /** Answer a request for permission. */
  approve(body, options) { return this.transport.send("POST", `/runs/${encodeURIComponent(this.id)}/approve`, options, body); }
  /** Answer a question. */
  answer(body, options) { return this.transport.send("POST", `/runs/${encodeURIComponent(this.id)}/answer`, options, body); }
  /** Go back to an entry, in a run of its own. */
  branch(body, options) { return this.transport.send("POST", `/runs/${encodeURIComponent(this.id)}/branch`, withKey(options), body); }
  /** Entries of the journal. */
  listEntries(options) { return this.transport.send("GET", `/runs/${encodeURIComponent(this.id)}/entries`, options); }
  /** The runs that it goes on from, or that go on from it. */
  getTree(options) { return this.transport.send("GET", `/runs/${encodeURIComponent(this.id)}/tree`, options); }
  /** What its models took. */
  getCost(options) { return this.transport.send("GET", `/runs/${encodeURIComponent(this.id)}/cost`, options); }
  /** The files of the session. */
  listFiles(options) { return this.transport.send("GET", `/runs/${encodeURIComponent(this.id)}/files`, options); }
  /** A file. */
  getFile(path, options) { return this.transport.request("GET", `/runs/${encodeURIComponent(this.id)}/files/${encodePath(path)}`, options); }
  /** Write a file. */
  putFile(path, body, options) { return this.transport.send("PUT", `/runs/${encodeURIComponent(this.id)}/files/${encodePath(path)}`, options, body); }
  /** Remove a file. */
  deleteFile(path, options) { return this.transport.send("DELETE", `/runs/${encodeURIComponent(this.id)}/files/${encodePath(path)}`, options); }
}

/** The operations of all runs. */
export class RunsOperations {
  constructor(transport) {
    this.transport = transport;
  }

  /** Start a run. */
  start(body, options) { return this.transport.send("POST", "/runs", withKey(options), body); }
  /** The runs, newest first. */
  list(options) { return this.transport.send("GET", "/runs", options); }
}

/** The operations of a service. */
export class ServiceOperations {
  constructor(transport) {
    this.transport = transport;
  }

  /** Whether the service can take more work. */
  health(options) { return this.transport.send("GET", "/health", options); }
  /** Sign a browser in: change a token for a cookie. */
  login(body, options) { return this.transport.send("POST", "/login", options, body); }
  /** Sign a browser out. */
  logout(options) { return this.transport.send("POST", "/logout", options); }
  /** Who asks, and how many sessions there are. */
  status(options) { return this.transport.send("GET", "/status", options); }
  /** The programs with their agents and handlers. */
  program(options) { return this.transport.send("GET", "/program", options); }
  /** What is started by itself, when next and how it went last. */
  listJobs(options) { return this.transport.send("GET", "/jobs", options); }
  /** What others were to be told, and whether it has arrived. */
  listDeliveries(options) { return this.transport.send("GET", "/deliveries", options); }
  /** What models took, put together. */
  listCosts(options) { return this.transport.send("GET", "/cost", options); }
  /** The models of the connected providers. */
  listModels(options) { return this.transport.send("GET", "/models", options); }
  /** What the programs may do. */
  getAudit(options) { return this.transport.send("GET", "/audit", options); }
  /** Serve programs as their files are now. */
  reload(options) { return this.transport.send("POST", "/reload", options); }
  /** This document. */
  openapi(options) { return this.transport.send("GET", "/openapi.json", options); }
}
