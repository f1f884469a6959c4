// Made from the OpenAPI document of the service by `python -m docs.generate`.

export interface Error {
  code: string;
  message: string;
  help?: string | null;
}

export type State = "working" | "waiting" | "paused" | "idle" | "asleep" | "ok" | "failed" | "cancelled" | "interrupted";

export type Ok = Record<string, unknown>;

export interface Health {
  ok: boolean;
  version: string;
  open_files: number;
  max_files: number | null;
  free_disk_mb: number;
  loop_lag_s: number;
  problems: Array<string>;
}

export interface Status {
  version: string;
  user: string;
  admin: boolean;
  sessions: { working: number; idle: number; asleep: number; };
  programs: Array<string>;
}

export interface Programs {
  programs: Array<{ name: string; path: string; ok: boolean; agents: Array<{ name: string; affordance: string; role: string; handlers: Array<{ name: string; affordance: string; playbook: boolean; private: boolean; /** its payload as a signature */ takes: string; /** JSON Schema of its payload */ schema: Record<string, unknown>; gives: string; result: Record<string, unknown> | null; }>; }>; chat: Array<{ agent: string; event: string; field: string | null; title: string; }>; }>;
}

export interface Started {
  id: string;
  program: string;
  owner: string;
  state: State;
  call?: string | null;
}

export interface Run {
  id: string;
  program: string;
  owner: string;
  state: State;
  title: string;
  /** seconds since the epoch */
  started: number;
  /** seconds since the epoch */
  updated: number;
  requests: number;
  tokens: number;
  usd: number | null;
  parent: unknown | null;
  /** whether this process carries it out */
  hosted: boolean;
  entries: number;
}

export interface RunDetails {
  id: string;
  program: string;
  owner: string;
  state: State;
  title: string;
  /** seconds since the epoch */
  started: number;
  /** seconds since the epoch */
  updated: number;
  requests: number;
  tokens: number;
  usd: number | null;
  parent: unknown | null;
  /** whether this process carries it out */
  hosted: boolean;
  entries: number;
  open: Array<OpenRequest>;
  /** whether the last call has a result; null where it has not ended */
  ok: boolean | null;
  /** of the last call; `Results` has its type */
  result: unknown;
  /** the kind of failure of the last call, such as E0501 for a limit */
  code: string | null;
  /** why the last call failed */
  error: string | null;
  help: string | null;
  /** whether the last call was cancelled */
  aborted: boolean;
  /** id of the last call; null where it has not ended */
  last_call: string | null;
  call?: unknown | null;
  handler?: string | null;
}

export interface Runs {
  runs: Array<Run>;
  next: string | null;
}

export interface Entries {
  entries: Array<{ n: number; /** seconds since the epoch */ ts: number; kind: string; path: Array<string>; agent: string; }>;
  last: number;
  more: boolean;
}

export interface Tree {
  current: string;
  runs: Array<{ run: string; }>;
}

export interface RunCost {
  requests: number;
  tokens: number;
  usd: number | null;
}

export interface Costs {
  by: string;
  groups: Array<{ requests: number; tokens: number; usd: number | null; }>;
  total: { requests: number; tokens: number; usd: number | null; };
}

export interface File {
  path: string;
  bytes: number;
  /** seconds since the epoch */
  changed?: number;
}

export interface Files {
  files: Array<File>;
}

export interface Response {
  type: "response";
  command: string;
  success: boolean;
}

export interface Models {
  models: Array<{ model: string; }>;
}

export interface Deliveries {
  deliveries: Array<{ id: string; event: string; address: string; run: string; created: number; due: number; tries: number; state: "waiting" | "sending" | "delivered" | "failed"; problem: string; }>;
}

export interface Jobs {
  jobs: Array<{ id: string; program: string; name: string; handler: string; payload: unknown; words: string; line: number; trigger: "every" | "when"; missed: "once" | "never"; overlap: "skip" | "wait" | "together"; jitter: number; zone: string | null; next: string | null; last?: { run: string; due: string; state: "waiting" | "starting" | "started" | "ended" | "failed" | "skipped"; reason: string; }; }>;
}

export interface Reloaded {
  programs: Array<{ name: string; changed: boolean; error: string | null; }>;
}

export interface Audit {
  programs: Array<Record<string, unknown>>;
}

/** The first message of a connection: the run and its state. What is open in the run follows. */
export interface GreetingMessage {
  type: "rpc_ready";
  id: string;
  program: string;
  title: string;
  state: State;
  changed?: string;
  attached?: boolean;
  schema_version?: number;
  version?: string;
  agents?: Array<string>;
}

/** An event. It has the number `n` of its entry in the journal, unless no journal keeps it. */
export interface EventMessage {
  type: "event";
  n?: number;
  event: Event;
}

/** A question to a person, until a `request_closed` with its `id`. */
export interface QuestionMessage {
  type: "question";
  id: string;
  question: string;
  options: Array<string>;
  form?: QuestionForm;
  tool?: QuestionTool;
  secret?: boolean;
  path: Array<string>;
  timeout_s: number | null;
}

/** A request for permission, until a `request_closed` with its `id`; `preview` is a diff of what would change. */
export interface ApprovalMessage {
  type: "approval_request";
  id: string;
  agent: string;
  what: string;
  detail: string;
  preview?: string;
  always?: string;
  chain?: Array<string>;
  path: Array<string>;
  timeout_s: number | null;
}

/** A question or a request for permission needs no answer any more. */
export interface ClosedMessage {
  type: "request_closed";
  id: string;
  reason: string;
}

/** The state of the run has changed. */
export interface StateMessage {
  type: "state";
  state: State;
}

/** A line of the log, for admins. */
export interface LogMessage {
  type: "log";
  text: string;
}

/** The session cannot go on; `report` is the place in the program, for admins. */
export interface FailureMessage {
  type: "session_failed";
  code?: string;
  error: string;
  help?: string;
  report?: string;
}

/** The last message to a reader that has left too much unread. */
export interface CutOffMessage {
  type: "cut_off";
  reason: string;
}

/** The response to a command, with the `id` of the command; `error_code` says in a word why it was refused. */
export interface ResponseMessage {
  type: "response";
  command: string;
  id?: string | number;
  success: boolean;
  data?: unknown;
  error?: string;
  error_code?: string;
  help?: string;
}

/** The form that a question belongs to, and the name of the field that it asks for. */
export interface QuestionForm {
  title: string;
  schema: Record<string, unknown>;
  field: string;
}

/** The tool of the client that a question calls; the answer is its result, or `{"error": …}`. */
export interface QuestionTool {
  name: string;
  arguments: Record<string, unknown>;
}

/** The last text for people in an answer that was cut off, and the `action` that it stands in. */
export interface WrittenText {
  action: string;
  text: string;
}

/** A run begins. */
export interface RunStarted {
  v: 1;
  type: "run_started";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
}

/** A run has ended; `code` is the kind of its failure, `origin` where the error was first told. */
export interface RunEnded {
  v: 1;
  type: "run_ended";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  ok: boolean;
  interrupted?: boolean;
  code?: string;
  origin?: Array<string>;
}

/** A run goes on, with further `words` of a command line, or with another version of its program. For admins alone. */
export interface RunResumed {
  v: 1;
  type: "resumed";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  words?: Array<string>;
  limits?: Record<string, unknown>;
  version_hash?: string;
}

/** A consumer of events has failed, and hears of no further ones. For admins alone. */
export interface ConsumerDropped {
  v: 1;
  type: "consumer_dropped";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  consumer: string;
}

/** The person has allowed something for always. */
export interface RuleAllowed {
  v: 1;
  type: "allowed";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  rule: string;
}

/** The program has shown something. */
export interface LinePrinted {
  v: 1;
  type: "printed";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  message: string;
}

/** The person is asked something. */
export interface PersonAsked {
  v: 1;
  type: "asked";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  question: string;
  options: Array<string>;
}

/** The person has answered. */
export interface PersonAnswered {
  v: 1;
  type: "answered";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  question: string;
  answer: string;
}

/** The person is asked to allow something; `chain` says who asked whom, the outermost first. */
export interface ApprovalRequested {
  v: 1;
  type: "approval_requested";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  what: string;
  detail: string;
  id?: string;
  chain?: Array<string>;
}

/** The person has said whether something may be done: `yes`, `no` or `always`; `reason` says why not. */
export interface ApprovalGiven {
  v: 1;
  type: "approval_given";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  what: string;
  answer: string;
  id?: string;
  reason?: string;
}

/** A handler begins; `narrowed_to` names the roles that its call is narrowed to. */
export interface HandlerStarted {
  v: 1;
  type: "handler_started";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  event: string;
  args?: unknown;
  narrowed_to?: Array<string>;
}

/** A handler has given its result. */
export interface HandlerEnded {
  v: 1;
  type: "handler_ended";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  event: string;
  result?: unknown;
}

/** A handler has failed; `origin` is where its error was first told. */
export interface HandlerFailed {
  v: 1;
  type: "handler_failed";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  event: string;
  error?: string;
  origin?: Array<string>;
}

/** Something took longer than it may, and ends with an error. */
export interface TimedOut {
  v: 1;
  type: "timed_out";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  error?: string;
  origin?: Array<string>;
  help?: string;
  class?: string;
}

/** An attempt has failed and another one follows after a pause: of a request to a `model`, or of a `handler`. */
export interface RetryStarted {
  v: 1;
  type: "retry_started";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  model?: string;
  handler?: string;
  attempt: number;
  tries: number;
  delay_s: number;
  error?: string;
}

/** It is known what came of the further attempts of a request. */
export interface RetryEnded {
  v: 1;
  type: "retry_ended";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  model?: string;
  ok: boolean;
  attempt: number;
  error?: string;
}

/** A round of work that is improved begins. */
export interface RoundStarted {
  v: 1;
  type: "round_started";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  round: number;
  rounds: number;
}

/** A round has ended: its score, null where it has none, whether each gate is green, and what was decided. */
export interface RoundEnded {
  v: 1;
  type: "round_ended";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  round: number;
  rounds: number;
  decision?: string;
  score?: number | null;
  gates?: Record<string, boolean>;
}

/** Fields of an agent's state have other values. */
export interface StateChanged {
  v: 1;
  type: "state_changed";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  updates: Record<string, unknown>;
}

/** An action that a model asks for begins; it is `unsafe` where it may not be done twice. `read_as` says how it was read where the model wrote it otherwise. */
export interface ActionStarted {
  v: 1;
  type: "action_started";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  intent: string;
  id: string;
  fields?: Record<string, unknown>;
  read_as?: Array<string>;
  unsafe?: boolean;
  lasting?: boolean;
}

/** A person at a debugger has decided about an action: other `fields`, to `skip` it, or its `result`. For admins alone. */
export interface ActionOverridden {
  v: 1;
  type: "action_overridden";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  intent: string;
  decision: string;
  result?: unknown;
  tagged?: boolean;
  opaque?: string;
}

/** An action has given its result: as it is, `tagged`, or `opaque` where it cannot be kept. */
export interface ActionEnded {
  v: 1;
  type: "action_ended";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  intent: string;
  result?: unknown;
  tagged?: boolean;
  opaque?: string;
}

/** An action has failed. */
export interface ActionFailed {
  v: 1;
  type: "action_failed";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  intent: string;
  error?: string;
  origin?: Array<string>;
  help?: string;
  class?: string;
}

/** Code does something outside of the program that may not be done twice, or takes a while. */
export interface EffectStarted {
  v: 1;
  type: "effect_started";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  intent: string;
  fields: Record<string, unknown>;
  unsafe?: boolean;
  lasting?: boolean;
}

/** Something that code did outside has given a result, and perhaps `changed` what it was given, or `globals`. */
export interface EffectEnded {
  v: 1;
  type: "effect_ended";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  intent: string;
  fields: Record<string, unknown>;
  unsafe?: boolean;
  lasting?: boolean;
  result?: unknown;
  tagged?: boolean;
  opaque?: string | boolean;
  changed?: Record<string, unknown>;
  globals?: Record<string, unknown>;
  lost_globals?: boolean;
}

/** Something that code did outside has failed, and may have changed what it was given nevertheless. */
export interface EffectFailed {
  v: 1;
  type: "effect_failed";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  intent: string;
  fields: Record<string, unknown>;
  unsafe?: boolean;
  lasting?: boolean;
  opaque?: string | boolean;
  changed?: Record<string, unknown>;
  globals?: Record<string, unknown>;
  lost_globals?: boolean;
  error?: string;
  origin?: Array<string>;
  help?: string;
  class?: string;
}

/** It was decided what becomes of an effect of which it is not known whether it took place. For admins alone. */
export interface DoubtSettled {
  v: 1;
  type: "doubt_settled";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  intent: string;
  why: string;
  decision: string;
}

/** It has turned out that the action around only reads, so that it may be done twice. For admins alone. */
export interface ReadOnlyFound {
  v: 1;
  type: "only_reads";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  mcp: string;
  tool: string;
}

/** What is at a path of the project is kept, because an action is about to change it; null is nothing. For admins alone. */
export interface FileKept {
  v: 1;
  type: "file_kept";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  file: string;
  before: Record<string, unknown> | null;
}

/** An action has changed what is at a path of the project; the contents before and after it are kept. Attributes: beside: the run whose command was under way, too, and may have made the change; empty for none. */
export interface FileChanged {
  v: 1;
  type: "file_changed";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  file: string;
  before?: Record<string, unknown> | null;
  after?: Record<string, unknown> | null;
  beside?: string;
}

/** All files of the project are listed and kept, because a command may change them for at most so many seconds. For admins alone. */
export interface TreeKept {
  v: 1;
  type: "tree_kept";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  tree: string;
  seconds: number;
}

/** The command has ended, and each of the files that it has changed was told. For admins alone. */
export interface TreeCompared {
  v: 1;
  type: "tree_compared";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  tree: string;
  files: number;
}

/** What actions change of files is not kept, and so cannot be put back; told once for each reason. For admins alone. */
export interface ChangesNotKept {
  v: 1;
  type: "changes_not_kept";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  why: string;
}

/** What a run has changed at a path behind an entry was put back, or was as it had been before. */
export interface FileRestored {
  v: 1;
  type: "file_restored";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  file: string;
  entry: number;
  before?: Record<string, unknown> | null;
  after?: Record<string, unknown> | null;
}

/** Code has looked at something outside of the program, such as the clock. For admins alone. */
export interface ValueObserved {
  v: 1;
  type: "observed";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  what: string;
  value: unknown;
}

/** A timer of the program fires. For admins alone. */
export interface TimerFired {
  v: 1;
  type: "fired";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
}

/** An MCP server says how far a call of a tool is; `total` is null where it does not know. */
export interface McpProgress {
  v: 1;
  type: "mcp_progress";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  mcp: string;
  tool: string;
  progress: number;
  total: number | null;
  message?: string;
}

/** A request to a model: a digest of it, and what is new behind the `kept` messages of the last, or of `after`. */
export interface ModelAsked {
  v: 1;
  type: "model_asked";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  model: string;
  request?: string;
  after?: string;
  system?: string;
  kept?: number;
  messages?: Array<unknown>;
}

/** A piece of what a model shows of its thoughts arrives; no action is read from it, and nothing keeps it. For admins alone. */
export interface ThoughtDelta {
  v: 1;
  type: "thinking_delta";
  run: string;
  agent: string;
  path: Array<string>;
  recalled?: boolean;
  text: string;
}

/** A piece of a text arrives that a model is writing for people; it counts when its action is carried out. Texts of an answer are numbered from 1. `action` is `print`, `prompt_user` or `return`, or `call_llm` where code has a model write, and `field` where the text stands in it. */
export interface OutputDelta {
  v: 1;
  type: "output_delta";
  run: string;
  agent: string;
  path: Array<string>;
  recalled?: boolean;
  action: string;
  field: string;
  number: number;
  text: string;
  so_far?: boolean;
}

/** A result of a declared type grows: all of it that has arrived, of which texts may go on. */
export interface PartialResult {
  v: 1;
  type: "partial_result";
  run: string;
  agent: string;
  path: Array<string>;
  recalled?: boolean;
  value: unknown;
}

/** What has arrived of an answer since this was told last; an action of it is about to begin. For admins alone. */
export interface ModelWrote {
  v: 1;
  type: "model_wrote";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  text: string;
}

/** An answer has ended: what it took, and why it ended; one that was `replayed` took nothing. */
export interface ModelAnswered {
  v: 1;
  type: "model_answered";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  model: string;
  tokens: Record<string, number>;
  usd: number | null;
  stop?: string | null;
  text?: string;
  estimated?: boolean;
  replayed?: boolean;
  written?: WrittenText;
}

/** An attempt to get an answer came to nothing, and took something nevertheless. */
export interface AnswerDiscarded {
  v: 1;
  type: "answer_discarded";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  model: string;
  tokens: Record<string, number>;
  usd: number | null;
  stop?: string;
  estimated?: boolean;
}

/** Texts were ranked by a model for embeddings. */
export interface TextsEmbedded {
  v: 1;
  type: "texts_embedded";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  model: string;
  tokens: Record<string, number>;
  usd: number | null;
}

/** Texts could not be ranked by a model for embeddings. For admins alone. */
export interface EmbeddingFailed {
  v: 1;
  type: "embedding_failed";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  model: string | null;
  error: string;
  help?: string;
}

/** A request was not answered, or not to the end. */
export interface ModelFailed {
  v: 1;
  type: "model_failed";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  error?: string;
  origin?: Array<string>;
  help?: string;
  class?: string;
}

/** A model could not answer, and the next one is asked. For admins alone. */
export interface ModelReplaced {
  v: 1;
  type: "model_replaced";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  model: string;
  by: string;
  error: string;
}

/** The folder with earlier answers cannot be read or written; the model is asked. For admins alone. */
export interface AnswerCacheFailed {
  v: 1;
  type: "answer_cache_failed";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  folder: string;
  error: string;
}

/** Hooks have decided about an action, or about a request to a `model`: the decision, and what it holds. For admins alone. */
export interface HookDecided {
  v: 1;
  type: "hook_decided";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  intent: string;
  decision: string;
  reason?: unknown;
  to?: unknown;
  result?: unknown;
  tagged?: boolean;
  opaque?: string;
}

/** Hooks have replaced the result of an action. For admins alone. */
export interface HookReplaced {
  v: 1;
  type: "hook_replaced";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  intent: string;
  result?: unknown;
  tagged?: boolean;
  opaque?: string;
}

/** A hook has raised, took too long, or said something that is no decision. For admins alone. */
export interface HookFailed {
  v: 1;
  type: "hook_failed";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  hook: string;
  when: string;
  intent: string;
  error: string;
}

/** What an extension remembers has changed, for the n-th time. For admins alone. */
export interface ExtensionStateChanged {
  v: 1;
  type: "extension_state";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  extension: string;
  change: number;
  state: Record<string, unknown>;
}

/** A command goes on in the background, under a number that is that of its output, too. For admins alone. */
export interface CommandStarted {
  v: 1;
  type: "command_started";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  command: number;
  text?: string;
}

/** Nothing is left of such a command: it has `ended`, was `stopped`, or is `lost` with its process or sandbox. For admins alone. */
export interface CommandEnded {
  v: 1;
  type: "command_ended";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  command: number;
  state: string;
  exit_code?: number;
}

/** An agent is in another phase from now on. For admins alone. */
export interface PhaseStarted {
  v: 1;
  type: "phase_started";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  phase: string;
}

/** Playbooks wait before their next request. */
export interface RunPaused {
  v: 1;
  type: "paused";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
}

/** The pause is over. */
export interface RunContinued {
  v: 1;
  type: "continued";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
}

/** The messages that are queued for playbooks. */
export interface QueueChanged {
  v: 1;
  type: "queue_update";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  steering: Array<Record<string, unknown>>;
  follow_up: Array<Record<string, unknown>>;
  notices?: Array<Record<string, unknown>>;
  messages?: Array<Record<string, unknown>>;
}

/** A playbook hears something while it works (`steer`, `notice`, `message`), or before its end (`follow_up`). */
export interface MessageDelivered {
  v: 1;
  type: "steered";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  id: number;
  text: string;
  mode: string;
  to: string;
  from: string;
  images?: Array<Record<string, unknown>>;
  reply_to?: number;
  key?: string;
}

/** A conversation is to be shortened before the next request. For admins alone. */
export interface CompactionRequested {
  v: 1;
  type: "compaction_requested";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  instructions: string;
}

/** A summary has taken the place of the older messages of a conversation. */
export interface ConversationCompacted {
  v: 1;
  type: "compacted";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  lasting: boolean;
  reason: string;
  summary?: string;
  kept?: number;
  tokens_before: number;
  tokens_after: number;
  fallback?: string;
}

/** A client of a session, or Python code, begins a call, with what the client offers for it. */
export interface CallStarted {
  v: 1;
  type: "call_started";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  call: string;
  name: string;
  args?: unknown;
  client_tools?: unknown;
  client_context?: unknown;
  client_state?: unknown;
}

/** Such a call has ended: with a result, because it was `aborted`, or with an error, whose kind is `code`. */
export interface CallEnded {
  v: 1;
  type: "call_ended";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  call: string;
  name: string;
  ok: boolean;
  result?: unknown;
  aborted?: boolean;
  timed_out?: boolean;
  code?: string;
  error?: string;
  help?: string;
  report?: string;
}

/** A client of a session has chosen a model. */
export interface ModelChanged {
  v: 1;
  type: "model_changed";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  model: string | null;
}

/** A client of a session has chosen how much models think; empty leaves it to the program and the settings. */
export interface EffortChanged {
  v: 1;
  type: "effort_changed";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  effort: string;
}

/** From now on agents only look and plan, or they work again. */
export interface PlanModeChanged {
  v: 1;
  type: "plan_mode_changed";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  on: boolean;
}

/** The person has `accepted` or `refused` a plan, or nobody was there and it was only `shown`. Its steps are those that the person has accepted; `tasks` are ids in `std/tasks`. */
export interface PlanDecided {
  v: 1;
  type: "plan_decided";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  answer: string;
  steps: Array<string>;
  tasks?: Array<string>;
  words?: string;
}

/** A step of the accepted plan is done; `step` counts from 1. */
export interface PlanStepFinished {
  v: 1;
  type: "plan_step_finished";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  step: number;
  steps: number;
  text: string;
}

/** A client has given its session a name. */
export interface SessionNamed {
  v: 1;
  type: "session_named";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  name: string;
}

/** A client wants the memory of an agent shortened. */
export interface CompactionAsked {
  v: 1;
  type: "compaction_asked";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  instructions?: string;
}

/** An `expect` of an eval does not hold for the current case, which goes on. For admins alone. */
export interface ExpectationMissed {
  v: 1;
  type: "expectation_missed";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  message: string;
  details: Array<string>;
}

/** A case of an eval is given a score. For admins alone. */
export interface ScoreGiven {
  v: 1;
  type: "score_given";
  run: string;
  agent: string;
  path: Array<string>;
  seq: number;
  /** seconds since the epoch */
  ts: number;
  recalled?: boolean;
  name: string;
  value: number;
}

/** Give a message to a handler, `Agent.event`, an agent or `.event`, as the text that it takes, else `args.message`. */
export interface PromptCommand {
  type: "prompt";
  /** comes back in the response */
  id?: string | number;
  message: string;
  name?: string;
  streaming_behavior?: "steer" | "follow_up" | "";
  images?: Array<unknown> | null;
}

/** Call a handler, `Agent.event`, with some arguments. */
export interface RunPlaybookCommand {
  type: "run_playbook";
  /** comes back in the response */
  id?: string | number;
  name: string;
  args?: unknown;
}

/** Carry out the `run` statements of the program. */
export interface RunCommand {
  type: "run";
  /** comes back in the response */
  id?: string | number;
}

/** End a pause; or, if messages are queued, call the last handler again, which hears them. */
export interface ContinueCommand {
  type: "continue";
  /** comes back in the response */
  id?: string | number;
}

/** Queue a message before the model's next request; for an agent, or for one without delegated work. */
export interface SteerCommand {
  type: "steer";
  /** comes back in the response */
  id?: string | number;
  message: string;
  agent?: string;
  from?: string;
  images?: Array<unknown> | null;
}

/** Say something that is heard when the playbook would end; it then goes on. */
export interface FollowUpCommand {
  type: "follow_up";
  /** comes back in the response */
  id?: string | number;
  message: string;
  agent?: string;
  from?: string;
  images?: Array<unknown> | null;
}

/** Say something to an agent, also to one that was delegated its work; one that is idle hears it when it works. */
export interface SendToCommand {
  type: "send_to";
  /** comes back in the response */
  id?: string | number;
  agent: string;
  text: string;
  from?: string;
}

/** Take a message out of the queues, or all of them. */
export interface TakeBackCommand {
  type: "take_back";
  /** comes back in the response */
  id?: string | number;
  note?: number | null;
}

/** Whether one message that steers is delivered at a time, or all of them. */
export interface SetSteeringModeCommand {
  type: "set_steering_mode";
  /** comes back in the response */
  id?: string | number;
  mode: "one" | "all";
}

/** Whether one follow-up is delivered at a time, or all of them. */
export interface SetFollowUpModeCommand {
  type: "set_follow_up_mode";
  /** comes back in the response */
  id?: string | number;
  mode: "one" | "all";
}

/** Have the next request to a model wait until `continue`. */
export interface PauseCommand {
  type: "pause";
  /** comes back in the response */
  id?: string | number;
}

/** End the call that is under way, with everything it started; gives the messages it will not hear any more. */
export interface AbortCommand {
  type: "abort";
  /** comes back in the response */
  id?: string | number;
}

/** Allow an `approval_request`, once or always, or deny it; models get the `reason` of a denial. */
export interface ApproveCommand {
  type: "approve";
  /** comes back in the response */
  id?: string | number;
  request: string;
  decision: "yes" | "always" | "no";
  reason?: string;
}

/** Answer a `question`; `cancelled` says that nobody does. */
export interface AnswerCommand {
  type: "answer";
  /** comes back in the response */
  id?: string | number;
  request: string;
  answer?: string | null;
  cancelled?: boolean;
}

/** Use another model, `provider/model`, for everything from now on. */
export interface SetModelCommand {
  type: "set_model";
  /** comes back in the response */
  id?: string | number;
  model: string;
}

/** Have models think so much from now on; `auto` leaves it to the program and the settings. */
export interface SetThinkingLevelCommand {
  type: "set_thinking_level";
  /** comes back in the response */
  id?: string | number;
  level: "auto" | "none" | "low" | "medium" | "high";
}

/** Have agents only look, think and ask until a plan is accepted, or end that. */
export interface SetPlanModeCommand {
  type: "set_plan_mode";
  /** comes back in the response */
  id?: string | number;
  on: boolean;
}

/** Shorten the memory of an agent, by default of the last called one; `instructions` say what to keep. */
export interface CompactCommand {
  type: "compact";
  /** comes back in the response */
  id?: string | number;
  instructions?: string;
  agent?: string;
}

/** Carry out a command that an extension adds. */
export interface ExtensionCommandCommand {
  type: "extension_command";
  /** comes back in the response */
  id?: string | number;
  name: string;
  args?: Record<string, unknown> | null;
}

/** Give the session a name. */
export interface SetSessionNameCommand {
  type: "set_session_name";
  /** comes back in the response */
  id?: string | number;
  name: string;
}

/** The agents of the program with their handlers. */
export interface ListAgentsCommand {
  type: "list_agents";
  /** comes back in the response */
  id?: string | number;
}

/** The available commands: handlers for `run_playbook`, and the commands of this protocol. */
export interface GetCommandsCommand {
  type: "get_commands";
  /** comes back in the response */
  id?: string | number;
}

/** The models of all providers that are connected; lists are kept for a day. */
export interface GetAvailableModelsCommand {
  type: "get_available_models";
  /** comes back in the response */
  id?: string | number;
  refresh?: boolean;
}

/** The state: the current call, working agents, queues, open requests. */
export interface GetStateCommand {
  type: "get_state";
  /** comes back in the response */
  id?: string | number;
}

/** The activity of the session, and its usage. */
export interface GetSessionStatsCommand {
  type: "get_session_stats";
  /** comes back in the response */
  id?: string | number;
}

/** The session: its id and name, its program, its model, its journal. */
export interface SessionInfoCommand {
  type: "session_info";
  /** comes back in the response */
  id?: string | number;
}

/** The conversation of an agent, as its model knows it; without a name that of the call that was made last. */
export interface GetMessagesCommand {
  type: "get_messages";
  /** comes back in the response */
  id?: string | number;
  agent?: string;
}

/** The last answer of an agent's model; null before the first. */
export interface GetLastAssistantTextCommand {
  type: "get_last_assistant_text";
  /** comes back in the response */
  id?: string | number;
  agent?: string;
}

/** Entries of the journal behind the one with the number `since`, at most `limit`; `last` is where to go on. */
export interface GetEntriesCommand {
  type: "get_entries";
  /** comes back in the response */
  id?: string | number;
  since?: number;
  limit?: number;
}

/** The runs that this session goes on from or that go on from it, each with the run and entry it branches off. */
export interface GetTreeCommand {
  type: "get_tree";
  /** comes back in the response */
  id?: string | number;
}

export type Message = GreetingMessage | EventMessage | QuestionMessage | ApprovalMessage | ClosedMessage | StateMessage | LogMessage | FailureMessage | CutOffMessage;

export type SocketMessage = GreetingMessage | EventMessage | QuestionMessage | ApprovalMessage | ClosedMessage | StateMessage | LogMessage | FailureMessage | CutOffMessage | ResponseMessage;

export type OpenRequest = QuestionMessage | ApprovalMessage;

export type Event = RunStarted | RunEnded | RunResumed | ConsumerDropped | RuleAllowed | LinePrinted | PersonAsked | PersonAnswered | ApprovalRequested | ApprovalGiven | HandlerStarted | HandlerEnded | HandlerFailed | TimedOut | RetryStarted | RetryEnded | RoundStarted | RoundEnded | StateChanged | ActionStarted | ActionOverridden | ActionEnded | ActionFailed | EffectStarted | EffectEnded | EffectFailed | DoubtSettled | ReadOnlyFound | FileKept | FileChanged | TreeKept | TreeCompared | ChangesNotKept | FileRestored | ValueObserved | TimerFired | McpProgress | ModelAsked | ThoughtDelta | OutputDelta | PartialResult | ModelWrote | ModelAnswered | AnswerDiscarded | TextsEmbedded | EmbeddingFailed | ModelFailed | ModelReplaced | AnswerCacheFailed | HookDecided | HookReplaced | HookFailed | ExtensionStateChanged | CommandStarted | CommandEnded | PhaseStarted | RunPaused | RunContinued | QueueChanged | MessageDelivered | CompactionRequested | ConversationCompacted | CallStarted | CallEnded | ModelChanged | EffortChanged | PlanModeChanged | PlanDecided | PlanStepFinished | SessionNamed | CompactionAsked | ExpectationMissed | ScoreGiven;

export type Command = PromptCommand | RunPlaybookCommand | RunCommand | ContinueCommand | SteerCommand | FollowUpCommand | SendToCommand | TakeBackCommand | SetSteeringModeCommand | SetFollowUpModeCommand | PauseCommand | AbortCommand | ApproveCommand | AnswerCommand | SetModelCommand | SetThinkingLevelCommand | SetPlanModeCommand | CompactCommand | ExtensionCommandCommand | SetSessionNameCommand | ListAgentsCommand | GetCommandsCommand | GetAvailableModelsCommand | GetStateCommand | GetSessionStatsCommand | SessionInfoCommand | GetMessagesCommand | GetLastAssistantTextCommand | GetEntriesCommand | GetTreeCommand;

/** the results of handlers, by their names */
export interface Results {
}

export type StartRun = { handler: string; program?: string; payload?: unknown; } | { message: string; program?: string; handler?: string; images?: Array<Record<string, unknown>>; } | { program?: string; title?: string; };
