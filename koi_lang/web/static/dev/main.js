// The page for people who write programs: which screen it shows, and how it gets in.

import { html, render, useEffect, useState } from "../vendor/preact.js";
import { CompareScreen } from "./compare.js";
import { fileData, remoteData } from "./data.js";
import { ProgramScreen } from "./program.js";
import { RunScreen } from "./run.js";
import { RunsScreen } from "./runs.js";

/** The screen that an address names: `#/run/ID?tab=tree&entry=22`. */
export function routeOf(hash) {
  const [path, query] = hash.replace(/^#\/?/, "").split("?");
  const [screen, ...names] = path.split("/").map(decodeURIComponent);
  return { screen: screen || "runs", names, values: Object.fromEntries(new URLSearchParams(query || "")) };
}

function addressOf(id, values) {
  const given = Object.entries(values).filter(([, value]) => value);
  return `#/run/${encodeURIComponent(id)}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
}

function App({ data, held }) {
  const [route, setRoute] = useState(routeOf(location.hash));
  useEffect(() => {
    const change = () => setRoute(routeOf(location.hash));
    addEventListener("hashchange", change);
    return () => removeEventListener("hashchange", change);
  }, []);
  const { screen, names, values } = route;
  const isRun = data.isFile || screen === "run";
  const id = data.isFile ? held.run.id : names[0];
  const go = (change) => {
    const next = { tab: values.tab, entry: "", ...change };
    history.replaceState(null, "", addressOf(id, { ...next, tab: next.tab === "timeline" ? "" : next.tab }));
    setRoute(routeOf(location.hash));
  };
  return html`<div class="page">
    ${!data.isFile && html`<nav class="top" aria-label="screens"><b class="brand">koi</b>
      <a href="#/runs" aria-current=${screen === "runs" ? "page" : undefined}>Runs</a>
      ${data.serves && html`<a href="#/program" aria-current=${screen === "program" ? "page" : undefined}>Program</a>`}
      ${isRun && html`<span class="muted">${id}</span>`}</nav>`}
    ${isRun ? html`<${RunScreen} key=${id} data=${data} id=${id} tab=${values.tab || "timeline"} entry=${Number(values.entry) || 0} go=${go} />`
      : screen === "compare" ? html`<${CompareScreen} key=${names.join("/")} data=${data} one=${names[0]} two=${names[1]} />`
      : screen === "program" ? html`<${ProgramScreen} data=${data} name=${names[0]} go=${(name) => { location.hash = `#/program/${encodeURIComponent(name)}`; }} />`
      : html`<${RunsScreen} data=${data} />`}
  </div>`;
}

function Login({ data, onIn, problem }) {
  const [token, setToken] = useState("");
  const [error, setError] = useState(problem);
  const enter = async (event) => {
    event.preventDefault();
    try {
      await data.login(token);
      data.serves = (await data.status()).programs.length > 0;
      onIn();
    } catch (told) {
      setError(told);
    }
  };
  return html`<main class="login"><h1>koi</h1><form onSubmit=${enter}><label for="token">Token</label>
    <input id="token" type="password" autocomplete="off" value=${token} onInput=${(event) => setToken(event.target.value)} />
    <button class="primary" disabled=${!token}>Go in</button></form>
    <p class="muted">The service showed it when it was started.</p>${error && html`<p class="problem" role="alert">${error.message}</p>`}</main>`;
}

/** Take the token out of the address, which holds it once, and see whether the service lets us in. */
async function enter(data) {
  const parts = location.hash.slice(1).split("&");
  const token = parts.find((part) => part.startsWith("token="));
  if (token) {
    const rest = parts.filter((part) => part !== token).join("&");
    history.replaceState(null, "", location.pathname + location.search + (rest ? `#${rest}` : ""));
    await data.login(decodeURIComponent(token.slice("token=".length)));
  }
  return data.status();
}

async function begin() {
  const root = document.getElementById("page");
  const block = document.getElementById("held");
  const held = block ? JSON.parse(block.textContent) : null;
  const data = held ? fileData(held) : remoteData();
  const show = () => render(html`<${App} data=${data} held=${held} />`, root);
  try {
    if (!held) data.serves = (await enter(data)).programs.length > 0;
  } catch (error) {
    if (error.status !== 401 && error.status !== 403) throw error;
    addEventListener("hashchange", () => /^#(.*&)?token=/.test(location.hash) && location.reload());
    render(html`<${Login} data=${data} problem=${null} onIn=${show} />`, root);
    return;
  }
  show();
}

begin();
