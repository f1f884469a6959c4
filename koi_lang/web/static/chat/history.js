// Earlier conversations of the person.

import { html, useEffect, useState } from "../vendor/preact.js";
import { Icon } from "./icons.js";
import { deleted, forget, go, groupsNow, itemsOf, loadRuns, nextRuns, pin, pinned, place, problem, rename, runs, undoDelete } from "./store.js";
import { asMarkdown, when } from "./words.js";

const MOST_FOUND = 20;
const WORDS = { working: "working", waiting: "waits for you", paused: "paused", failed: "did not work" };

/** The list, by days; `onChosen` is told when one was chosen. */
export function History({ onChosen }) {
  const [words, setWords] = useState("");
  const { groups, ofPrograms } = groupsNow(words);
  const found = groups.reduce((count, [, listed]) => count + listed.length, ofPrograms.length);
  // What is searched for may stand in older ones, which were not loaded yet.
  useEffect(() => {
    if (words.trim() && found < MOST_FOUND && nextRuns.value) loadRuns(true).catch((error) => (problem.value = error));
  }, [words, found, nextRuns.value]);
  return html`
    <button type="button" class="button new" onClick=${() => (go(), onChosen())}><${Icon} name="plus" />New conversation</button>
    ${runs.value.length > 5 && html`<input type="search" class="field search" dir="auto" aria-label="Search conversations" placeholder="Search" value=${words} onInput=${(event) => setWords(event.target.value)} />`}
    <div role="status" class=${deleted.value ? "undo small" : "only-heard"}>${deleted.value && html`<span dir="auto">Deleted ${deleted.value.title}</span><button type="button" class="button small" onClick=${undoDelete}>Undo</button>`}</div>
    ${groups.map(([day, listed]) => html`<section key=${day}><h2 class="day">${day}</h2><${List} listed=${listed} onChosen=${onChosen} /></section>`)}
    ${ofPrograms.length > 0 && html`<details class="programs"><summary class="day">Begun by programs (${ofPrograms.length})</summary><${List} listed=${ofPrograms} onChosen=${onChosen} /></details>`}
    ${!groups.length && !ofPrograms.length && html`<p class="quiet small none">${words ? "None of that name" : "No conversations yet"}</p>`}
    ${nextRuns.value && html`<button type="button" class="button plain small" onClick=${() => loadRuns(true).catch((error) => (problem.value = error))}>Show more</button>`}`;
}

const List = ({ listed, onChosen }) => html`<ul class="history">${listed.map((each) => html`<${Entry} key=${each.run.id} ...${each} onChosen=${onChosen} />`)}</ul>`;

/** A conversation; of several branches the one that was used last. */
function Entry({ run, all, onChosen }) {
  const [mode, setMode] = useState("");
  const isHere = all.includes(place.value.run), isPinned = pinned.value.includes(run.id), title = run.title || "Conversation";
  const doing = (work) => () => (setMode(""), Promise.resolve(work()).catch((error) => (problem.value = error)));
  const save = (event) => (event.preventDefault(), doing(() => rename(run.id, new FormData(event.target).get("name").trim()))());
  if (mode === "rename") return html`
    <li><form class="rename" onSubmit=${save}>
      <input name="name" class="field" dir="auto" aria-label="Name" maxlength="80" required value=${title} ref=${(element) => element && !element.dataset.seen && ((element.dataset.seen = "1"), element.select())} onKeyDown=${(event) => event.key === "Escape" && (event.stopPropagation(), setMode(""))} />
      <button class="button small">Save</button></form></li>`;
  return html`
    <li class=${isHere ? "here" : ""} onKeyDown=${(event) => event.key === "Escape" && mode && (event.stopPropagation(), setMode(""))}>
      <a href=${`#/run/${encodeURIComponent(isHere ? place.value.run : run.id)}`} aria-current=${isHere ? "page" : undefined} onClick=${onChosen}>
        <span class="title" dir="auto">${title}</span>
        <span class=${`about small ${run.state}`}>${WORDS[run.state] ? `${WORDS[run.state]} · ` : ""}${when(run.updated || run.started)}</span>
      </a>
      <button type="button" class="button plain icon" aria-label=${`More about ${title}`} aria-expanded=${mode === "menu"} onClick=${() => setMode(mode ? "" : "menu")}><${Icon} name="more" /></button>
      ${mode === "menu" && html`<div class="menu card" role="group" aria-label=${title}>
        <button type="button" class="button plain small" onClick=${() => setMode("rename")}><${Icon} name="edit" />Rename</button>
        <button type="button" class="button plain small" onClick=${doing(() => pin(run.id, !isPinned))}><${Icon} name="pin" />${isPinned ? "Unpin" : "Pin"}</button>
        <button type="button" class="button plain small" onClick=${doing(async () => saveAs(`${title}.md`, asMarkdown(title, await itemsOf(isHere ? place.value.run : run.id))))}><${Icon} name="down" />Export</button>
        <button type="button" class="button plain small" onClick=${doing(() => forget(all, title))}><${Icon} name="trash" />Delete</button>
      </div>`}
    </li>`;
}

function saveAs(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/markdown" }));
  link.download = name.replace(/[\\/:*?"<>|\n]+/g, " ").trim();
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
