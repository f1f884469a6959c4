// Where messages are written: text, pictures and files. Writing waits for nothing that goes on above.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { Icon } from "./icons.js";
import { addFiles, conversation, dataAddress, draftKey, files, isBeginning, isPicture, place, problem, removeFile, say, stop, unsent, version } from "./store.js";
import { koi, mustSignIn } from "../api.js";
import { size } from "./words.js";

const MOST_PICTURES = 20;

/** The input with what is put to the message. `hint` stands in it while it is empty. */
export function Composer({ hint, initial, examples = [] }) {
  const [added, setAdded] = useState([]);
  const [isEmpty, setEmpty] = useState(true);
  const [isOver, setOver] = useState(false);
  const box = useRef(null), picker = useRef(null);
  version.value;
  const isSending = isBeginning() && unsent().some((each) => each.state !== "failed");
  const isBusy = Boolean(conversation.value?.busy), isAsked = Boolean(conversation.value?.requests.length);

  useEffect(() => {
    write(sessionStorage.getItem(draftKey()) || initial || "");
    if (matchMedia("(pointer: fine)").matches) box.current.focus();
  }, [place.value.run, place.value.handler]);

  function write(text) {
    box.current.value = text;
    changed();
  }

  function changed() {
    const element = box.current;
    setEmpty(!element.value.trim());
    sessionStorage.setItem(draftKey(), element.value);
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight + 2, 220)}px`;
  }

  async function put(list) {
    const wanted = [...list].slice(0, MOST_PICTURES);
    const made = await Promise.all(wanted.map(async (file) => ({ file, picture: isPicture(file) ? await dataAddress(file).catch(() => "") : "" })));
    setAdded((before) => [...before, ...made]);
    box.current?.focus();
  }

  async function send() {
    const text = box.current.value.trim(), files = added.map((each) => each.file), key = draftKey();
    if (isSending || (!text && !files.length)) return;
    problem.value = null;
    setAdded([]);
    write("");
    box.current.focus();
    await say(text, files).catch(() => mustSignIn.value && sessionStorage.setItem(key, text));
  }

  async function end() {
    const unheard = await stop().catch((error) => void (problem.value = error));
    if (unheard && box.current) write([unheard, box.current.value].filter(Boolean).join("\n\n"));
    box.current?.focus();
  }

  const onKeyDown = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing && matchMedia("(pointer: fine)").matches) {
      event.preventDefault();
      send();
    }
  };
  const onPaste = (event) => {
    if (!event.clipboardData.files.length) return;
    event.preventDefault();
    put(event.clipboardData.files);
  };
  useDropped(put, setOver);

  return html`
    ${isOver && html`<div class="drop-here"><p>Drop files to add them</p></div>`}
    ${examples.length > 0 && html`<ul class="chips" aria-label="Examples">${examples.map((example) => html`<li><button type="button" class="button chip" dir="auto" onClick=${() => (write(example), box.current.focus())}>${example}</button></li>`)}</ul>`}
    <form class="composer card" onSubmit=${(event) => (event.preventDefault(), send())}>
      ${added.length > 0 && html`<ul class="added" aria-label="Added">${added.map((each, at) => html`<li>
        ${each.picture ? html`<img src=${each.picture} alt="" />` : html`<${Icon} name="file" />`}<span class="name" dir="auto">${each.file.name}</span><span class="quiet small">${size(each.file.size)}</span>
        <button type="button" class="button plain icon" aria-label=${`Take ${each.file.name} away`} onClick=${() => setAdded(added.filter((_, n) => n !== at))}><${Icon} name="close" /></button></li>`)}</ul>`}
      <label class="only-heard" for="message">Message</label>
      <textarea id="message" dir="auto" rows="1" ref=${box} placeholder=${isAsked ? "Or say something else" : isBusy ? "Say something while it works" : hint} onInput=${changed} onKeyDown=${onKeyDown} onPaste=${onPaste}></textarea>
      <div class="tools">
        <input ref=${picker} type="file" multiple hidden onChange=${(event) => (put(event.target.files), (event.target.value = ""))} />
        <button type="button" class="button plain icon" aria-label="Add files" title="Add files" onClick=${() => picker.current.click()}><${Icon} name="clip" /></button>
        <span class="grow"></span>
        ${isBusy && html`<button type="button" class="button stop" onClick=${end}><${Icon} name="stop" />Stop</button>`}
        <button class="button main icon" aria-label="Send" title="Send" disabled=${isSending || (isEmpty && !added.length)}><${Icon} name="send" /></button>
      </div>
    </form>`;
}

/** Files that are dropped anywhere on the page. */
function useDropped(put, setOver) {
  useEffect(() => {
    let depth = 0;
    const holdsFiles = (event) => [...(event.dataTransfer?.types || [])].includes("Files");
    const handlers = {
      dragenter: (event) => holdsFiles(event) && (event.preventDefault(), (depth += 1), setOver(true)),
      dragover: (event) => holdsFiles(event) && event.preventDefault(),
      dragleave: (event) => holdsFiles(event) && (depth = Math.max(0, depth - 1)) === 0 && setOver(false),
      drop: (event) => {
        if (!holdsFiles(event)) return;
        event.preventDefault();
        depth = 0;
        setOver(false);
        put(event.dataTransfer.files);
      },
    };
    for (const [name, handler] of Object.entries(handlers)) addEventListener(name, handler);
    return () => {
      for (const [name, handler] of Object.entries(handlers)) removeEventListener(name, handler);
    };
  }, []);
}

/** The files of the session: to take out, to put in, to remove. */
export function Files() {
  const picker = useRef(null);
  const [isWorking, setWorking] = useState(false);
  const [isOpen, setOpen] = useState(false);
  const list = files.value;
  const run = place.value.run;
  if (!run || !list.length) return null;
  const doing = (work) => async () => {
    setWorking(true);
    await work().catch((error) => (problem.value = error));
    setWorking(false);
  };
  return html`
    <details class="files" open=${isOpen} onToggle=${(event) => setOpen(event.target.open)}>
      <summary><${Icon} name="file" />${list.length === 1 ? "1 file" : `${list.length} files`}</summary>
      <ul>${list.map((file) => html`<li key=${file.path}>
        <a href=${koi.run(run).fileUrl(file.path)} download=${file.path.split("/").pop()}>${file.path}</a><span class="quiet small">${size(file.size ?? file.bytes ?? 0)}</span>
        <button type="button" class="button plain icon" disabled=${isWorking} aria-label=${`Remove ${file.path}`} onClick=${doing(() => removeFile(file.path))}><${Icon} name="trash" /></button></li>`)}
      </ul>
      <input ref=${picker} type="file" multiple hidden onChange=${(event) => doing(() => addFiles([...event.target.files]))()} />
      <button type="button" class="button small" disabled=${isWorking} onClick=${() => picker.current.click()}><${Icon} name="plus" />Add files</button>
    </details>`;
}
