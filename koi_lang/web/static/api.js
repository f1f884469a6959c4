// The service as the pages know it: requests, commands, and the stream of a run. Addresses are relative to the page.

import { signal } from "./vendor/preact.js";

/** What the service refused, in its own words. */
export class ServiceError extends Error {
  constructor(status, about) {
    super(about.message || "The service did not answer as expected.");
    Object.assign(this, { status, code: about.code || "", help: about.help || "" });
  }
}

/** Whether the service wants to know who this is. */
export const mustSignIn = signal(false);

/**
 * One request; gives what came as JSON, or the response itself for anything else.
 * @param {object|Blob} [body] an object is sent as JSON, a file as it is.
 * @throws {ServiceError} refused, or (status 0) not reached.
 */
export async function request(method, address, body, headers = {}, how = {}) {
  const isData = body !== undefined && !(body instanceof Blob);
  const sent = { ...how, method, headers: { ...headers }, body: isData ? JSON.stringify(body) : body, cache: "no-store" };
  if (isData) sent.headers["Content-Type"] = "application/json";
  const response = await fetch(address, sent).catch(() => {
    throw new ServiceError(0, { code: "unreachable", message: "The service cannot be reached at the moment." });
  });
  const isJson = (response.headers.get("Content-Type") || "").includes("json");
  const data = isJson ? await response.json().catch(() => ({})) : null;
  if (response.status === 401) mustSignIn.value = true;
  if (!response.ok) throw new ServiceError(response.status, data || { message: `${response.status} ${response.statusText}` });
  return isJson ? data : response;
}

export const get = (address) => request("GET", address);
export const post = (address, body = {}, headers = {}) => request("POST", address, body, headers);
export const put = (address, body) => request("PUT", address, body);
export const remove = (address) => request("DELETE", address);

/** The address of something of a run: `of("4f0c", "files", "a b.txt")`. */
export const of = (run, ...parts) => ["api/runs", run, ...parts].map((part, at) => (at ? encodePath(part) : part)).join("/");
const encodePath = (part) => String(part).split("/").map(encodeURIComponent).join("/");

let sent = 0;

/**
 * A command of `koi rpc` for a run; gives the data of its response.
 * @throws {ServiceError} refused: `code` is its `error_code`.
 */
export async function command(run, type, fields = {}) {
  const answer = await post("api/command", { run, id: ++sent, type, ...fields });
  if (answer.success === false) throw new ServiceError(409, { code: answer.error_code, message: answer.error, help: answer.help });
  return answer.data;
}

/** Take the token out of the page's address, which nobody shall see it in, and exchange it for a cookie. */
export async function signIn(token = tokenInAddress()) {
  if (!token) return;
  await post("api/login", { token });
  mustSignIn.value = false;
}

/** Have the service forget this browser, with all pages that it has open. */
export const signOut = () => post("api/logout");

function tokenInAddress() {
  const found = /(?:^#|&)token=([^&]*)/.exec(location.hash);
  if (!found) return "";
  history.replaceState(null, "", location.pathname + location.search);
  return decodeURIComponent(found[1]);
}

const FIRST_PAUSE_MS = 250, LONGEST_PAUSE_MS = 10_000;
// The service says something every 20 s, if only that it is there.
const LONGEST_SILENCE_MS = 50_000;
// How often a WebSocket is asked whether anybody is there.
const ASK_MS = 20_000;
// A page that nobody looks at gives its connection back after a while.
const UNSEEN_MS = 30_000, LOOK_MS = 5_000;

/**
 * Follow what a run tells, over breaks of the connection: nothing is told twice and nothing is left out.
 * @param {(message: object, id: string) => void} onMessage gets each message once.
 * @param {(state: "open"|"lost"|"ended", error?: ServiceError) => void} [onState] "ended" when it makes no sense to go on.
 * @param {{since?: number, mayRest?: () => boolean}} [how] whether it may stop listening while nobody looks.
 * @returns {{close: () => void}}
 */
export function listen(run, onMessage, onState = () => {}, { since = 0, mayRest = () => false } = {}) {
  const stream = { closed: false, last: "", since, pause: FIRST_PAUSE_MS, abort: null, wake: null, unseen: 0, isResting: false };
  const hurry = () => stream.wake && stream.wake();
  const rest = setInterval(() => {
    stream.unseen = document.hidden ? stream.unseen + LOOK_MS : 0;
    if (stream.unseen < UNSEEN_MS || stream.isResting || !mayRest()) return;
    stream.isResting = true;
    stream.abort?.abort();
  }, LOOK_MS);
  const look = () => !document.hidden && hurry();
  addEventListener("online", hurry);
  document.addEventListener("visibilitychange", look);
  follow(run, stream, onMessage, onState).finally(() => {
    clearInterval(rest);
    removeEventListener("online", hurry);
    document.removeEventListener("visibilitychange", look);
  });
  return {
    close() {
      stream.closed = true;
      stream.abort?.abort();
      hurry();
    },
  };
}

async function follow(run, stream, onMessage, onState) {
  while (!stream.closed) {
    try {
      await readOnce(run, stream, onMessage, onState);
    } catch (error) {
      if (stream.closed) return;
      if (error instanceof ServiceError && error.status >= 400 && error.status < 500 && error.status !== 429) {
        onState("ended", error);
        return;
      }
    }
    if (stream.closed) return;
    if (!stream.isResting) onState("lost");
    await new Promise((resolve) => {
      stream.wake = resolve;
      if (!stream.isResting) setTimeout(resolve, stream.pause * (0.75 + Math.random() / 2));
    });
    stream.isResting = false;
    stream.pause = Math.min(stream.pause * 2, LONGEST_PAUSE_MS);
  }
}

/** Over a WebSocket, of which browsers open many more than other connections; where none opens, as events. */
async function readOnce(run, stream, onMessage, onState) {
  if (!stream.hasNoSockets && (await readSocket(run, stream, onMessage, onState))) return;
  await readEvents(run, stream, onMessage, () => {
    stream.hasNoSockets = !stream.hadSocket;
    onState("open");
  });
}

/** Read until the WebSocket is closed; gives whether it had opened. */
function readSocket(run, stream, onMessage, onState) {
  const address = new URL(`${of(run, "ws")}?since=${parseInt(stream.last, 10) || stream.since}`, location.href);
  address.protocol = address.protocol.replace("http", "ws");
  return new Promise((resolve) => {
    const socket = new WebSocket(address);
    let isOpen = false, silence = 0;
    const listening = () => {
      clearTimeout(silence);
      silence = setTimeout(() => socket.close(), LONGEST_SILENCE_MS);
    };
    // An empty line is refused at once, and wakes no session.
    const asking = setInterval(() => socket.readyState === WebSocket.OPEN && socket.send(""), ASK_MS);
    listening();
    stream.abort = { abort: () => socket.close() };
    socket.onmessage = ({ data }) => {
      listening();
      const message = JSON.parse(data);
      if (!isOpen) onState("open");
      isOpen = stream.hadSocket = true;
      stream.pause = FIRST_PAUSE_MS;
      if (message.type === "response" || stream.closed) return;
      if (message.n !== undefined) stream.last = String(message.n);
      onMessage(message, stream.last);
    };
    socket.onclose = () => {
      clearTimeout(silence);
      clearInterval(asking);
      resolve(isOpen || stream.closed);
    };
  });
}

async function readEvents(run, stream, onMessage, onOpen) {
  stream.abort = new AbortController();
  let silence;
  const listening = () => {
    clearTimeout(silence);
    silence = setTimeout(() => stream.abort.abort(), LONGEST_SILENCE_MS);
  };
  listening();
  try {
    const headers = { Accept: "text/event-stream", ...(stream.last ? { "Last-Event-ID": stream.last } : {}) };
    const address = `${of(run, "events")}?since=${stream.since}`;
    const response = await fetch(address, { headers, signal: stream.abort.signal, cache: "no-store" });
    if (response.status === 401) mustSignIn.value = true;
    if (!response.ok) throw new ServiceError(response.status, await response.json().catch(() => ({})));
    onOpen();
    stream.pause = FIRST_PAUSE_MS;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parse = parser((id, data) => {
      if (id) stream.last = id;
      onMessage(JSON.parse(data), id);
    });
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      listening();
      parse(part.value);
    }
  } finally {
    clearTimeout(silence);
  }
}

/** Pieces of a stream of events, cut anywhere, to `tell(id, data)`. */
export function parser(tell) {
  let rest = "", id = "", data = [];
  const line = (text) => {
    if (text === "") {
      if (data.length) tell(id, data.join("\n"));
      id = "";
      data = [];
      return;
    }
    const colon = text.indexOf(":");
    const name = colon < 0 ? text : text.slice(0, colon);
    const value = colon < 0 ? "" : text.slice(colon + 1).replace(/^ /, "");
    if (name === "data") data.push(value);
    else if (name === "id") id = value;
  };
  return (piece) => {
    const lines = (rest + piece).split("\n");
    rest = lines.pop();
    for (const each of lines) line(each.endsWith("\r") ? each.slice(0, -1) : each);
  };
}
