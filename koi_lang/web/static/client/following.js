// The messages of a run over a connection that may break: nothing is lost, and no entry comes twice.

import { FOREIGN, foreign, pauses, sleep } from "./transport.js";

// The service says something every 20 s, if only that it is there.
const MAX_SILENCE_MS = 50_000;
// How often a WebSocket is asked whether anybody is there.
const ASK_MS = 20_000;

/**
 * The messages of a run, the first of each connection a `rpc_ready`. What is open in the run comes again behind that.
 * @param {Transport} transport
 * @param {{since?: number, signal?: AbortSignal, patienceMs?: number, onState?: (state: "open"|"lost") => void}} [how]
 * @throws {KoiError} refused, or the service is away for too long.
 */
export async function* follow(transport, run, { since = 0, signal, patienceMs = transport.patienceMs, onState = () => {} } = {}) {
  const place = { last: since, id: "", hasSockets: opensSockets(transport) };
  let waits = pauses(), contact = Date.now();
  while (!signal?.aborted) {
    try {
      for await (const message of read(transport, run, place, signal)) {
        if (typeof message?.type !== "string") throw foreign(transport, 200);
        contact = Date.now();
        if (message.type === "rpc_ready") onState("open");
        else waits = pauses();
        if (message.n !== undefined && message.n <= place.last) continue;
        place.last = message.n ?? place.last;
        yield message;
      }
    } catch (error) {
      if (signal?.aborted) return;
      const isRefused = error.code === FOREIGN || (error.status >= 400 && error.status < 500 && error.status !== 429);
      if (error instanceof SyntaxError) throw foreign(transport, 200);
      if (isRefused || !transport.hasContact || Date.now() - contact > patienceMs) throw error;
    }
    if (signal?.aborted) return;
    onState("lost");
    await sleep(waits.next().value, signal).catch(() => {});
  }
}

// Pages of the service have a cookie, which goes along; a browser opens many more of these than of other connections.
const opensSockets = ({ token, base }) => !token && globalThis.location?.origin === base.origin && typeof WebSocket === "function";

/** One connection: a WebSocket, or server-sent events where none opens. */
async function* read(transport, run, place, signal) {
  let isOpen = false;
  if (place.hasSockets) {
    for await (const message of readSocket(transport.address(`/runs/${encodeURIComponent(run)}/ws`, { since: place.last }), signal)) {
      isOpen = place.hadSocket = true;
      place.id = "";
      if (message.type !== "response") yield message;
    }
  }
  if (isOpen || signal?.aborted) return;
  for await (const message of readEvents(transport, run, place, signal)) {
    place.hasSockets &&= place.hadSocket;
    yield message;
  }
}

async function* readSocket(address, signal) {
  address.protocol = address.protocol.replace("http", "ws");
  const socket = new WebSocket(address), messages = [];
  let wake = () => {}, isClosed = false;
  const watch = silenceWatch(() => socket.close());
  const close = () => socket.close();
  // An empty line is refused at once, and wakes no session.
  const asking = setInterval(() => socket.readyState === WebSocket.OPEN && socket.send(""), ASK_MS);
  signal?.addEventListener("abort", close);
  socket.onmessage = ({ data }) => (watch.hear(), messages.push(JSON.parse(data)), wake());
  socket.onclose = () => ((isClosed = true), wake());
  try {
    while (!signal?.aborted) {
      yield* messages.splice(0);
      if (isClosed && !messages.length) return;
      if (!messages.length) await new Promise((resolve) => (wake = resolve));
    }
  } finally {
    clearInterval(asking);
    watch.end();
    signal?.removeEventListener("abort", close);
    socket.close();
  }
}

async function* readEvents(transport, run, place, signal) {
  const connection = new AbortController(), stop = () => connection.abort(), watch = silenceWatch(stop);
  signal?.addEventListener("abort", stop);
  try {
    const headers = { Accept: "text/event-stream", ...(place.id && { "Last-Event-ID": place.id }) };
    const about = { method: "GET", signal: connection.signal, cache: "no-store", ...transport.content(undefined, headers) };
    const response = await transport.sendOnce(transport.address(`/runs/${encodeURIComponent(run)}/events`, { since: place.last }), about);
    if (!response.headers.get("Content-Type")?.startsWith("text/event-stream")) throw foreign(transport, response.status);
    const messages = [];
    const parse = parser((id, data) => ((place.id = id || place.id), messages.push(JSON.parse(data))));
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      watch.hear();
      parse(part.value);
      yield* messages.splice(0);
    }
  } finally {
    watch.end();
    signal?.removeEventListener("abort", stop);
    connection.abort();
  }
}

/** Ends a connection over which nothing comes any more. */
function silenceWatch(end) {
  let timer = setTimeout(end, MAX_SILENCE_MS);
  return { hear: () => (clearTimeout(timer), (timer = setTimeout(end, MAX_SILENCE_MS))), end: () => clearTimeout(timer) };
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
