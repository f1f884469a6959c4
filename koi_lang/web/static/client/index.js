// A service of Koi from JavaScript, in browsers and in Node.

import { follow } from "./following.js";
import { RunOperations, RunsOperations, ServiceOperations } from "./operations.js";
import { encodePath, KoiError, Transport } from "./transport.js";

// States of runs in which nothing more is going to happen.
const OVER = new Set(["ok", "failed", "cancelled", "interrupted"]);

/** A service. Its operations are those of its OpenAPI document. */
export class KoiClient extends ServiceOperations {
  /**
   * @param {{url?: string, token?: string, patienceMs?: number, onRefused?: (error: KoiError) => void}} [options]
   *   `url` and `token` as `koi serve http` shows them; a page of the service needs neither. `patienceMs`: how long a
   *   request is sent again while the service is away, 30,000 without it.
   */
  constructor(options) {
    super(new Transport(options));
    this.runs = new Runs(this.transport);
  }

  /** A run by its id. */
  run(id) {
    return new Run(this.transport, { id });
  }
}

class Runs extends RunsOperations {
  /** Start a run with the call of a handler, with a message, or with neither. */
  async start(body, options) {
    return new Run(this.transport, await super.start(body, options));
  }
}

/** A run: `id`, and `details`, what the service said of it last. */
export class Run extends RunOperations {
  constructor(transport, details) {
    super(transport);
    this.id = details.id;
    // The number of the last entry of the journal that `events` has given.
    this.last = 0;
    this.begin(details);
  }

  begin(details) {
    this.details = details;
    this.call = details.call?.call ?? details.call ?? details.last_call ?? "";
    this.ended = typeof details.ok === "boolean" ? details : null;
    this.endedAt = Infinity;
    return details;
  }

  async sendMessage(body, options) {
    return this.begin(await super.sendMessage(body, options));
  }

  async callHandler(body, options) {
    return this.begin(await super.callHandler(body, options));
  }

  /** The address of a file, for links. */
  fileUrl(path) {
    return this.transport.address(`/runs/${encodeURIComponent(this.id)}/files/${encodePath(path)}`).href;
  }

  async branch(body, options) {
    return new Run(this.transport, await super.branch(body, options));
  }

  /**
   * The messages of the run, over breaks of the connection: those behind the last one that this object has given, or
   * behind the entry `since`. They end with the call that was begun here; without one when the loop is left.
   */
  async *events({ since = this.last, call = this.call, ...how } = {}) {
    if (call && since >= this.endedAt) return;
    for await (const message of follow(this.transport, this.id, { since, ...how })) {
      this.last = Math.max(this.last, message.n ?? 0);
      const hasEnded = Boolean(call) && (message.type === "session_failed" || (message.event?.type === "call_ended" && message.event.call === call));
      if (hasEnded) Object.assign(this, { ended: message.event ?? message, endedAt: this.last });
      yield message;
      if (hasEnded) return;
    }
  }

  /** Wait for the end of the call, and give its result. @throws {KoiError} the call has failed, or was cancelled. */
  async result({ signal, ...how } = {}) {
    if (!this.ended && !this.call) {
      const { state, entries } = this.begin(await this.get({ signal }));
      if (OVER.has(state)) this.ended = this.details;
      if (!this.call) this.last = Math.max(this.last, entries);
    }
    for await (const { type, event } of this.ended ? [] : this.events({ signal, ...how })) {
      if (event?.type === "call_ended" && event.call === (this.call || event.call)) this.ended = event;
      if (this.ended || type === "session_failed") break;
    }
    const { ok, result, aborted, timed_out, error, help, report } = this.ended || {};
    if (ok) return result;
    const code = timed_out ? "timed_out" : aborted ? "cancelled" : "failed";
    throw new KoiError(error || `the call was ${code.replace("_", " ")}`, { code, help, report });
  }
}

export { KoiError };
