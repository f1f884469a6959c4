// The service as the pages use it: its client, who is signed in, and runs that are followed while somebody looks.

import { KoiClient, KoiError } from "./client/index.js";
import { signal } from "./vendor/preact.js";

/** Whether the service wants to know who this is. */
export const mustSignIn = signal(false);

/** The service of the page. Its pages say at once what cannot be done. */
export const koi = new KoiClient({ patienceMs: 0, onRefused: ({ status }) => status === 401 && (mustSignIn.value = true) });

let sent = 0;

/**
 * A command of `koi rpc` for a run that no operation of the client stands for; gives the data of its response.
 * @throws {KoiError} refused: `code` is its `error_code`.
 */
export async function command(run, type, fields = {}) {
  const answer = await koi.transport.send("POST", "/command", {}, { run, id: ++sent, type, ...fields });
  if (answer.success === false) throw new KoiError(answer.error, { status: 409, code: answer.error_code, help: answer.help });
  return answer.data;
}

/** Take the token out of the page's address, which nobody shall see it in, and exchange it for a cookie. */
export async function signIn(token = tokenInAddress()) {
  if (!token) return;
  await koi.login({ token });
  mustSignIn.value = false;
}

/** Have the service forget this browser, with all pages that it has open. */
export const signOut = () => koi.logout();

function tokenInAddress() {
  const found = /(?:^#|&)token=([^&]*)/.exec(location.hash);
  if (!found) return "";
  history.replaceState(null, "", location.pathname + location.search);
  return decodeURIComponent(found[1]);
}

// A page that nobody looks at gives its connection back after a while.
const UNSEEN_MS = 30_000, LOOK_MS = 5_000;

/**
 * Follow the messages of a run for as long as the page is there.
 * @param {(message: object) => void} onMessage gets each message; what is open comes again after a break.
 * @param {(state: "open"|"lost"|"ended", error?: KoiError) => void} [onState] "ended" when it makes no sense to go on.
 * @param {{since?: number, mayRest?: () => boolean}} [how] whether it may stop listening while nobody looks.
 * @returns {{close: () => void}}
 */
export function listen(run, onMessage, onState = () => {}, { since = 0, mayRest = () => false } = {}) {
  let state = "", unseen = 0, connection = null;
  const followed = koi.run(run);
  followed.last = since;
  const tell = (now, error) => onState((state = now), error);
  async function open() {
    connection?.abort();
    const { signal } = (connection = new AbortController());
    const onlyHere = (now, error) => !signal.aborted && tell(now, error);
    try {
      for await (const message of followed.events({ signal, patienceMs: Infinity, onState: onlyHere })) {
        if (!signal.aborted) onMessage(message);
      }
    } catch (error) {
      onlyHere("ended", error);
    }
  }
  const hurry = () => !document.hidden && (state === "lost" || state === "resting") && open();
  const rest = setInterval(() => {
    unseen = document.hidden ? unseen + LOOK_MS : 0;
    if (unseen < UNSEEN_MS || state !== "open" || !mayRest()) return;
    state = "resting";
    connection.abort();
  }, LOOK_MS);
  addEventListener("online", hurry);
  document.addEventListener("visibilitychange", hurry);
  open();
  return {
    close() {
      clearInterval(rest);
      removeEventListener("online", hurry);
      document.removeEventListener("visibilitychange", hurry);
      connection.abort();
    },
  };
}

export { KoiError };
