// Made from the OpenAPI document of the service by `python -m docs.generate`.

import type { Run as RunHandle } from "./index.d.ts";
import type { Audit, Costs, Deliveries, Entries, File, Files, Health, Jobs, Models, Ok, Programs, Reloaded, RunCost, RunDetails, Runs, StartRun, Started, State, Status, Tree } from "./schemas.d.ts";

/** What every request takes: a signal that ends it, and whether it outlives its page. */
export interface RequestOptions {
  signal?: AbortSignal;
  keepalive?: boolean;
}

/** The operations of a run. */
export class RunOperations {
  /** A run, and how its last call ended. */
  get(options?: RequestOptions & { wait?: number }): Promise<RunDetails>;
  /** Remove a run, its journal and its files. */
  delete(options?: RequestOptions): Promise<void>;
  /** Begin the call that a message is. */
  sendMessage(body: { message: string; /** at most 16 items */ images?: Array<Record<string, unknown>>; handler?: string; }, options?: RequestOptions & { idempotencyKey?: string; wait?: number }): Promise<RunHandle>;
  /** Begin the call of a handler. */
  callHandler(body: { handler: string; payload?: unknown; }, options?: RequestOptions & { idempotencyKey?: string; wait?: number }): Promise<RunHandle>;
  /** End what is under way, with all it started. */
  cancel(options?: RequestOptions): Promise<Ok>;
  /** Have the next request to a model wait. */
  pause(options?: RequestOptions): Promise<Ok>;
  /** End a pause. */
  continue(options?: RequestOptions): Promise<Ok>;
  /** Say something to who works. */
  steer(body: { /** at least 1 character */ message: string; agent?: string; /** at most 16 items */ images?: Array<Record<string, unknown>>; }, options?: RequestOptions): Promise<Ok>;
  /** Answer a request for permission. */
  approve(body: { request: string; decision: "yes" | "always" | "no"; reason?: string; }, options?: RequestOptions): Promise<Ok>;
  /** Answer a question. */
  answer(body: { request: string; answer: string; }, options?: RequestOptions): Promise<Ok>;
  /** Go back to an entry, in a run of its own. */
  branch(body: { /** from 1 to 9007199254740991 */ at?: number; answer?: string; message?: string; }, options?: RequestOptions & { idempotencyKey?: string }): Promise<RunHandle>;
  /** Entries of the journal. */
  listEntries(options?: RequestOptions & { since?: string; limit?: number }): Promise<Entries>;
  /** The runs that it goes on from, or that go on from it. */
  getTree(options?: RequestOptions): Promise<Tree>;
  /** What its models took. */
  getCost(options?: RequestOptions): Promise<RunCost>;
  /** The files of the session. */
  listFiles(options?: RequestOptions): Promise<Files>;
  /** A file. */
  getFile(path: string, options?: RequestOptions): Promise<Response>;
  /** Write a file. */
  putFile(path: string, body: Blob | ArrayBuffer | ArrayBufferView | string, options?: RequestOptions): Promise<File>;
  /** Remove a file. */
  deleteFile(path: string, options?: RequestOptions): Promise<void>;
}

/** The operations of all runs. */
export class RunsOperations {
  /** Start a run. */
  start(body: StartRun, options?: RequestOptions & { idempotencyKey?: string; wait?: number }): Promise<RunHandle>;
  /** The runs, newest first. */
  list(options?: RequestOptions & { program?: string; state?: State; user?: string; before?: string; limit?: number }): Promise<Runs>;
}

/** The operations of a service. */
export class ServiceOperations {
  /** Whether the service can take more work. */
  health(options?: RequestOptions): Promise<Health>;
  /** Sign a browser in: change a token for a cookie. */
  login(body: { token: string; }, options?: RequestOptions): Promise<Ok>;
  /** Sign a browser out. */
  logout(options?: RequestOptions): Promise<Ok>;
  /** Who asks, and how many sessions there are. */
  status(options?: RequestOptions): Promise<Status>;
  /** The programs with their agents and handlers. */
  program(options?: RequestOptions): Promise<Programs>;
  /** What is started by itself, when next and how it went last. */
  listJobs(options?: RequestOptions): Promise<Jobs>;
  /** What others were to be told, and whether it has arrived. */
  listDeliveries(options?: RequestOptions & { undelivered?: "true" | "false" }): Promise<Deliveries>;
  /** What models took, put together. */
  listCosts(options?: RequestOptions & { by?: "day" | "model" | "user" | "program" | "agent" }): Promise<Costs>;
  /** The models of the connected providers. */
  listModels(options?: RequestOptions): Promise<Models>;
  /** What the programs may do. */
  getAudit(options?: RequestOptions): Promise<Audit>;
  /** Serve programs as their files are now. */
  reload(options?: RequestOptions): Promise<Reloaded>;
  /** This document. */
  openapi(options?: RequestOptions): Promise<Record<string, unknown>>;
}
