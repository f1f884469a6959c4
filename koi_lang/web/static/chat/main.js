// The page for people who use a program.

import { mustSignIn, signIn, signOut } from "../api.js";
import { html, render, useEffect, useRef, useState } from "../vendor/preact.js";
import { Composer, Files } from "./composer.js";
import { History } from "./history.js";
import { Icon } from "./icons.js";
import { Requests, Words } from "./requests.js";
import { Start } from "./start.js";
import { changeSince, connection, conversation, follow, goOn, goOnInBranch, isBeginning, load, loadRuns, place, problem, runs, unsent, user, version } from "./store.js";
import { Cause, Jump, Thread } from "./thread.js";
import { money, refusalText } from "./words.js";

function App() {
  const [isOpen, setOpen] = useState(false);
  const menu = useRef(null);
  const close = () => setOpen(false);
  useEffect(() => {
    const onKey = (event) => event.key === "Escape" && isOpen && (close(), menu.current?.focus());
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [isOpen]);
  useTitle();
  if (mustSignIn.value) return html`<${SignIn} />`;
  if (!user.value) return html`<main class="waiting-page"><${Problem} /></main>`;
  return html`
    <a class="skip" href="#message" onClick=${(event) => (event.preventDefault(), document.getElementById("message")?.focus())}>To the input</a>
    <header class="bar">
      <button type="button" class="button plain icon" ref=${menu} aria-label="Conversations" aria-expanded=${isOpen} aria-controls="side" onClick=${() => setOpen(!isOpen)}><${Icon} name=${isOpen ? "close" : "menu"} /></button>
      <span class="where" dir="auto">${titleNow()}</span>
    </header>
    <nav id="side" class=${`side ${isOpen ? "open" : ""}`} aria-label="Conversations"><${History} onChosen=${close} /><${Corner} /></nav>
    ${isOpen && html`<div class="shade" onClick=${close}></div>`}
    <main class=${place.value.run || isBeginning() ? "talk" : "begin"}>
      <${Banner} />
      ${conversation.value?.isRehearsal && html`<p role="status" class="rehearsal small">No model is connected: the answers are made up.</p>`}
      ${place.value.run || isBeginning() ? html`<${Talk} key=${place.value.run || "beginning"} />` : html`<${Problem} /><${Start} />`}
    </main>`;
}

/** Who is signed in, and what the open conversation has cost. */
function Corner() {
  const run = runs.value.find((each) => each.id === place.value.run);
  const cost = run?.requests && run.usd !== 0 ? (run.usd === null ? `${run.tokens.toLocaleString()} tokens` : money(run.usd)) : "";
  return html`<p class="corner small"><span><span><${Icon} name="person" />${user.value.user || "not signed in"}${user.value.admin && user.value.user !== "admin" ? " · admin" : ""}</span>${cost && html`<span class="quiet" title="What this conversation has cost">${cost}</span>`}</span><button type="button" class="button plain small" onClick=${leave}>Sign out</button></p>`;
}

/** Sign out, and forget what was not sent: whoever comes next is somebody else. */
async function leave() {
  await signOut().then(() => (sessionStorage.clear(), location.assign(location.pathname)), (error) => (problem.value = error));
}

function Talk() {
  version.value;
  const held = conversation.value;
  return html`
    <h1 class="only-heard">${titleNow()}</h1>
    <${Thread} />
    <div class="dock">
      <${Jump} />
      ${held.isInterrupted && html`<p class="restarted small">The service was started anew while this was under way. <button type="button" class="button small" onClick=${() => goOn().catch((error) => (problem.value = error))}>Go on</button></p>`}
      ${changeSince() && html`<${Changed} why=${changeSince()} />`}
      <${Problem} />
      <${Requests} />
      <${Files} />
      <${Composer} hint="Write a message" />
    </div>`;
}

/** Why a conversation cannot go on with the program as it is now, and how it can. */
function Changed({ why }) {
  const branch = () => goOnInBranch().catch((error) => (problem.value = error));
  return html`
    <div role="status" class="restarted small">
      <div><p>This assistant was changed, so the conversation cannot go on as it is. What was said stays here.</p>${user.value.admin && html`<p><${Words} text=${why} /></p>`}</div>
      <button type="button" class="button small" onClick=${branch}>Go on in a new conversation</button>
    </div>`;
}

const titleNow = () => conversation.value?.name || runs.value.find((run) => run.id === place.value.run)?.title || unsent()[0]?.text.slice(0, 80) || (place.value.run ? "Conversation" : "New conversation");

function useTitle() {
  version.value;
  const waits = conversation.value?.requests.length ? "(asks you) " : "";
  document.title = `${waits}${titleNow()}`.slice(0, 80);
}

/** That the connection is lost, and that it is there again. */
function Banner() {
  const [wasLost, setLost] = useState(false);
  const state = connection.value;
  useEffect(() => {
    if (state === "lost") {
      const timer = setTimeout(() => setLost(true), 600);
      return () => clearTimeout(timer);
    }
    if (!wasLost) return undefined;
    const timer = setTimeout(() => setLost(false), 2500);
    return () => clearTimeout(timer);
  }, [state, wasLost]);
  const text = !wasLost ? "" : state === "lost" ? "The connection is lost. It goes on as soon as it is there again." : "The connection is there again.";
  return html`<div role="status" class=${text ? `banner ${state}` : "only-heard"}>${text}</div>`;
}

function Problem() {
  const error = problem.value?.code === "program_changed" ? null : problem.value;
  return html`<div role="alert" class=${error ? "problem" : "only-heard"}>${error && html`
    <div><p>${refusalText(error)}</p>${error.status !== undefined && html`<${Cause} text=${error.message} help=${error.help} />`}</div>
    <button type="button" class="button plain icon" aria-label="Close" onClick=${() => (problem.value = null)}><${Icon} name="close" /></button>`}</div>`;
}

function SignIn() {
  const [isWrong, setWrong] = useState(false);
  const enter = async (event) => {
    event.preventDefault();
    setWrong(false);
    await signIn(new FormData(event.target).get("token").trim()).then(begin, () => setWrong(true));
  };
  return html`
    <main class="sign-in">
      <h1>Who is there?</h1>
      <p class="quiet">Open the link that you were given, or enter the key from it.</p>
      <form onSubmit=${enter}>
        <label for="token">Key</label>
        <input id="token" name="token" class="field" type="password" autocomplete="current-password" required />
        <button class="button main">Enter</button>
        <p role="alert" class="wrong">${isWrong ? "This key is not known here." : ""}</p>
      </form>
    </main>`;
}

async function begin() {
  try {
    await load();
    problem.value = null;
    follow(true);
  } catch (error) {
    if (!mustSignIn.value) problem.value = error;
  }
}

addEventListener("hashchange", () => (/(?:^#|&)token=/.test(location.hash) ? signIn().then(begin, () => {}) : user.value && follow()));
addEventListener("focus", () => user.value && loadRuns().catch(() => {}));
render(html`<${App} />`, document.getElementById("page"));
signIn().catch(() => {}).then(begin);
