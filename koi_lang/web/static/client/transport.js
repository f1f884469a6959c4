// Requests to a service: one way of sending them, one class of errors.

const FIRST_PAUSE_MS = 250, MAX_PAUSE_MS = 10_000, DEFAULT_PATIENCE_MS = 30_000;
// Answers of a service, or of a proxy before it, that has no room or is not there at the moment.
const TEMPORARY = new Set([0, 429, 502, 503, 504]);
const REPEATABLE = new Set(["GET", "PUT"]);

/**
 * What a service refused, or why it was not reached.
 * `code`: why, in a word for programs. `help`: what to do. `status`: of HTTP, 0 where no answer came.
 */
export class KoiError extends Error {
  constructor(message, { code = "failed", help = "", status = 0, report = "", retryAfterMs = 0, cause } = {}) {
    super(message, { cause });
    Object.assign(this, { name: "KoiError", code, help: help || "", status, report, retryAfterMs });
  }
}

export const FOREIGN = "foreign_server";

/** The error of a server that answers otherwise than a service. */
export const foreign = ({ base }, status) =>
  new KoiError(`${base} is no service of Koi`, { code: FOREIGN, status, help: "Look at the address: it is the one that `koi serve http` shows." });

/** Growing pauses between attempts, in milliseconds; not all clients come at once. */
export function* pauses() {
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, MAX_PAUSE_MS)) yield pause * (0.75 + Math.random() / 2);
}

/** Wait, unless a signal ends that. */
export const sleep = (ms, signal) =>
  new Promise((resolve, reject) => {
    const end = () => (clearTimeout(timer), reject(signal.reason));
    const timer = setTimeout(() => (signal?.removeEventListener("abort", end), resolve()), ms);
    if (signal?.aborted) end();
    signal?.addEventListener("abort", end, { once: true });
  });

/** The path of a file as a part of an address. */
export function encodePath(path) {
  const parts = String(path).split("/");
  if (!parts.every((part) => part && part !== "." && part !== "..")) {
    throw new KoiError(`\`${path}\` is no name of a file of a run`, { code: "invalid_request", help: "Write one such as `notes/a.txt`." });
  }
  return parts.map(encodeURIComponent).join("/");
}

/** Options with the key of a request that may be sent again and happens once. */
export const withKey = (options = {}) => ({ ...options, idempotencyKey: options.idempotencyKey ?? `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}` });

/** Where a service is, and who asks. */
export class Transport {
  constructor({ url, token = "", patienceMs = DEFAULT_PATIENCE_MS, onRefused = () => {} } = {}) {
    Object.assign(this, { base: baseOf(url), patienceMs, onRefused, hasContact: false });
    // Whoever looks at a client in a log does not see it.
    Object.defineProperty(this, "token", { value: token });
  }

  /** The address of something of the API. */
  address(path, query = {}) {
    const address = new URL(`api${path}`, this.base);
    for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== null && value !== "") address.searchParams.set(name, value);
    return address;
  }

  /** Send a request and give the JSON of its answer. @throws {KoiError} */
  async send(method, path, options, body) {
    const response = await this.request(method, path, options, body);
    if (response.status === 204) return undefined;
    const data = await response.json().catch(() => undefined);
    if (data !== undefined) return data;
    throw foreign(this, response.status);
  }

  /**
   * Send a request, again while the service is away and that does no harm, and give the response.
   * Options that are none of `signal`, `keepalive`, `headers` and `idempotencyKey` are fields of the query.
   * @throws {KoiError}
   */
  async request(method, path, { signal, keepalive, headers, idempotencyKey, ...query } = {}, body) {
    const end = Date.now() + this.patienceMs, isRepeatable = REPEATABLE.has(method) || idempotencyKey !== undefined;
    const about = { method, signal, keepalive, cache: "no-store", ...this.content(body, { ...headers, ...(idempotencyKey && { "Idempotency-Key": idempotencyKey }) }) };
    for (const pause of pauses()) {
      try {
        return await this.sendOnce(this.address(path, query), about);
      } catch (error) {
        const wait = Math.max(pause, error.retryAfterMs || 0);
        if (!isRepeatable || !this.hasContact || !TEMPORARY.has(error.status) || Date.now() + wait > end) throw error;
        await sleep(wait, signal);
      }
    }
  }

  /** Objects are sent as JSON, files and bytes as they are. */
  content(body, headers) {
    const isData = body !== undefined && !(body instanceof Blob || body instanceof ArrayBuffer || ArrayBuffer.isView(body) || typeof body === "string");
    const type = body === undefined ? {} : { "Content-Type": isData ? "application/json" : "application/octet-stream" };
    return { body: isData ? JSON.stringify(body) : body, headers: { ...(this.token && { Authorization: `Bearer ${this.token}` }), ...type, ...headers } };
  }

  async sendOnce(address, about) {
    const response = await fetch(address, about).catch((error) => {
      if (about.signal?.aborted) throw error;
      const help = `Look whether \`koi serve http\` runs at ${this.base}`;
      throw this.refuse(new KoiError("The service cannot be reached at the moment.", { code: "unreachable", help, cause: error }));
    });
    this.hasContact = true;
    if (response.ok) return response;
    const { message, code = "unreadable", help } = (await response.json().catch(() => null)) ?? {};
    const { status, statusText } = response, retryAfterMs = 1000 * (Number(response.headers.get("Retry-After")) || 0);
    throw this.refuse(new KoiError(message ?? `${status} ${statusText}`, { code, help, status, retryAfterMs }));
  }

  refuse(error) {
    this.onRefused(error);
    return error;
  }
}

/** The folder that paths are joined to: that of an address which was given, or of the page. */
function baseOf(url) {
  try {
    const base = new URL(url ?? "", globalThis.document?.baseURI);
    base.hash = base.search = "";
    if (url !== undefined && !base.pathname.endsWith("/")) base.pathname += "/";
    return new URL("./", base);
  } catch {
    const help = "Give `url` as `koi serve http` shows it.";
    throw new KoiError(`\`${url ?? ""}\` is no address of a service`, { code: "invalid_request", help });
  }
}
