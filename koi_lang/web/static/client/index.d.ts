// The types of the client; those of requests, answers and messages are in `schemas.d.ts`.

import { type RequestOptions, RunOperations, RunsOperations, ServiceOperations } from "./operations.js";
import type { CallEnded, FailureMessage, Message, RunDetails, Started } from "./schemas.d.ts";

export type * from "./schemas.d.ts";
export type { RequestOptions };

/** What a service refused, or why it was not reached. */
export class KoiError extends Error {
  /** Why, in a word for programs, such as `unknown_run`. */
  code: string;
  /** What to do; empty where there is nothing to say. */
  help: string;
  /** The status of HTTP; 0 where no answer came. */
  status: number;
  /** Of a call that failed: the place in the program, for admins. */
  report: string;
  /** How long the service wants to be left alone. */
  retryAfterMs: number;
}

export interface ClientOptions {
  /** The address of the service, as `koi serve http` shows it; without it that of the page. */
  url?: string;
  /** The token of a user; without it the cookie of the page. */
  token?: string;
  /** How long a request is sent again while the service is away; 30,000 without it. */
  patienceMs?: number;
  /** Is called with each error of a request. */
  onRefused?: (error: KoiError) => void;
}

export interface FollowOptions {
  signal?: AbortSignal;
  /** The number of an entry of the journal; what is behind it comes. */
  since?: number;
  /** The id of the call with whose end the messages end; "" for none. */
  call?: string;
  /** How long the service may be away; as long as for requests without it. */
  patienceMs?: number;
  /** Is called when the connection opens, or is lost and tried again. */
  onState?: (state: "open" | "lost") => void;
}

/** A service. Its operations are those of its OpenAPI document. */
export class KoiClient extends ServiceOperations {
  constructor(options?: ClientOptions);
  readonly runs: RunsOperations;
  /** A run by its id. */
  run(id: string): Run;
}

/** A run. */
export class Run extends RunOperations {
  readonly id: string;
  /** What the service said of it last. */
  readonly details: Started | RunDetails;
  /** The call that was begun here last; empty for none. */
  readonly call: string;
  /** The number of the last entry of the journal that `events` has given. */
  readonly last: number;
  /** How that call ended; null while it goes on. */
  readonly ended: CallEnded | RunDetails | FailureMessage | null;
  /** The address of a file, for links. */
  fileUrl(path: string): string;
  /** The messages of the run, until the call that was begun here has ended. */
  events(options?: FollowOptions): AsyncGenerator<Message, void, void>;
  /** The result of the call. Throws a `KoiError` where it has failed, or was cancelled. */
  result<Result = unknown>(options?: FollowOptions): Promise<Result>;
}
