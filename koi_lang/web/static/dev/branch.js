// Before a branch is begun: what it takes over, what it asks again, and about what that costs; with another answer, or
// with an edited playbook, which stays a version of the program until somebody keeps it.

import { answerOf } from "../store.js";
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { count, money, plain } from "./texts.js";
import { DiffText, Problem, useAnswer } from "./ui.js";

/** `handler` is the one whose playbook is edited; without it, the answer at the entry may be another one. */
export function BranchDialog({ run, data, at: chosen, handler, onClose }) {
  const [playbook, unknown] = useAnswer(() => handler && data.playbook(run.id, handler, chosen), [run.id, handler]);
  const at = handler ? playbook?.at : chosen;
  const entry = run.state.entries.get(at);
  const before = handler ? playbook?.text ?? null : entry ? answerOf(entry) : null;
  const [answer, setAnswer] = useState(before ?? "");
  const [failed, setFailed] = useState(null);
  const [isBusy, setBusy] = useState(false);
  const [preview, error] = useAnswer(() => at && data.preview(run.id, at), [run.id, at]);
  useEffect(() => { if (playbook) setAnswer(playbook.text); }, [playbook]);
  const box = useRef(null);
  useEffect(() => {
    box.current.showModal();
  }, []);
  const begin = async () => {
    setBusy(true);
    setFailed(null);
    try {
      const body = before !== null && answer !== before ? { at, answer } : { at };
      const made = await (handler ? data.branchEdited(run.id, { at, playbook: { handler, text: answer } }) : data.branch(run.run.value, body));
      box.current.close();
      location.hash = `#/run/${made.id}`;
    } catch (problem) {
      setFailed(problem);
    }
    setBusy(false);
  };
  const fate = playbook?.is_outside ? "The file is outside of this project, and stays as it is" : "The file stays as it is until you keep the text";
  return html`<dialog ref=${box} class="branch" aria-labelledby="branch-title" onClose=${onClose}>
    <h2 id="branch-title">${handler ? `Edit the playbook of ${handler}` : `Branch at entry ${at}`}</h2>
    ${entry && html`<p class="muted">${entry.kind.replaceAll("_", " ")} · ${entry.path.join(" / ") || "the run"}</p>`}
    ${before !== null && html`<label>${handler ? fate : entry.kind === "model_answered" ? "What the model is to have answered" : "What the person is to have answered"}
      <textarea rows=${Math.min(10, answer.split("\n").length + 2)} value=${answer} onInput=${(event) => setAnswer(event.target.value)}></textarea></label>`}
    ${(unknown || error) && html`<${Problem} error=${unknown || error} />`}
    ${preview && html`<${Preview} preview=${preview} />`}
    ${failed && html`<${Problem} error=${failed} />`}
    <div class="row end"><button onClick=${() => box.current.close()}>Not now</button>
      <button class="primary" disabled=${isBusy || !preview || (handler && (answer === before || !answer.trim()))} onClick=${begin}>${isBusy ? "Begins…" : handler ? "Go on with this text" : "Begin the branch"}</button></div>
  </dialog>`;
}

/** What a run with an edited playbook has changed of its program, to be kept in the file or thrown away. */
export function EditBar({ run, data }) {
  const [held, setHeld] = useState({ edit: run.run.value?.edit, error: null });
  const { edit, error } = held;
  if (!edit) return null;
  const settle = async (keep) => {
    if (!keep && !confirm("The run and its text are removed.")) return;
    try {
      if (!keep) await run.leave();
      await data.settleEdit(run.id, keep);
      if (keep) setHeld({ edit: { ...edit, is_kept: true }, error: null });
      else location.hash = `#/${run.state.header.parent ? `run/${run.state.header.parent[0]}` : "runs"}`;
    } catch (problem) {
      if (!keep) run.rejoin();
      setHeld({ edit: { ...edit, is_stale: keep }, error: problem });
    }
  };
  const names = edit.handlers.join(", ");
  if (edit.is_kept) return html`<p class="note" role="status">The edited playbook of ${names} is in the file.</p>`;
  return html`<section class="edited" aria-label="edited playbook">
    <div class="row"><b>Edited playbook of ${names}</b><span class="muted">in this run alone</span>
      ${!edit.is_outside && html`<button class="primary" disabled=${edit.is_stale} onClick=${() => settle(true)}>Keep in the file</button>`}
      <button class="danger" onClick=${() => settle(false)}>Throw away</button></div>
    ${edit.is_outside && html`<p class="note">The program is outside of this project. Write the difference into its file by hand.</p>`}
    ${edit.is_stale && !error && html`<p class="warning">The file has changed since; what follows is the difference to it as it is now.</p>`}
    ${error && html`<${Problem} error=${error} />`}
    <details><summary>what is different</summary><${DiffText} text=${edit.diff} /></details>
  </section>`;
}

function Preview({ preview }) {
  const { kept, anew } = preview;
  const costs = anew.requests ? `about ${plain(anew.tokens)} tokens, about ${money(anew.usd, anew.unpriced)}` : "which costs nothing";
  return html`<div class="preview">
    <p><b>Taken over:</b> ${count(kept.answers, "answer")} of models, ${count(kept.actions, "action")}${kept.usd ? `, worth ${money(kept.usd, kept.unpriced)}` : ""}.</p>
    <p><b>Asked again:</b> about ${count(anew.answers, "answer")} of models, about ${count(anew.actions, "action")}: ${costs}.</p>
    ${preview.left.length > 0 && html`<p class="warning">The run did this later on; you are asked before it is done again: ${preview.left.join(", ")}.</p>`}
    ${preview.is_changed && html`<p class="warning">The program has changed since: what stands behind the first change is done anew, too.</p>`}
  </div>`;
}
