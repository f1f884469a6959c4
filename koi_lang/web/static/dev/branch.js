// Before a branch is begun: what it takes over, what it asks again, and about what that costs; with another answer.

import { answerOf } from "../store.js";
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { count, money, plain } from "./texts.js";
import { Problem, useAnswer } from "./ui.js";

export function BranchDialog({ run, data, at, onClose }) {
  const entry = run.state.entries.get(at);
  const before = entry ? answerOf(entry) : null;
  const [answer, setAnswer] = useState(before ?? "");
  const [failed, setFailed] = useState(null);
  const [isBusy, setBusy] = useState(false);
  const [preview, error] = useAnswer(() => data.preview(run.id, at), [run.id, at]);
  const box = useRef(null);
  useEffect(() => {
    box.current.showModal();
  }, []);
  const begin = async () => {
    setBusy(true);
    setFailed(null);
    try {
      const body = before !== null && answer !== before ? { at, answer } : { at };
      const made = await data.branch(run.run.value, body);
      box.current.close();
      location.hash = `#/run/${made.id}`;
    } catch (problem) {
      setFailed(problem);
    }
    setBusy(false);
  };
  return html`<dialog ref=${box} class="branch" aria-labelledby="branch-title" onClose=${onClose}>
    <h2 id="branch-title">Branch at entry ${at}</h2>
    ${entry && html`<p class="muted">${entry.kind.replaceAll("_", " ")} · ${entry.path.join(" / ") || "the run"}</p>`}
    ${before !== null && html`<label>${entry.kind === "model_answered" ? "What the model is to have answered" : "What the person is to have answered"}
      <textarea rows=${Math.min(10, answer.split("\n").length + 2)} value=${answer} onInput=${(event) => setAnswer(event.target.value)}></textarea></label>`}
    ${error && html`<${Problem} error=${error} />`}
    ${preview && html`<${Preview} preview=${preview} />`}
    ${failed && html`<${Problem} error=${failed} />`}
    <div class="row end"><button onClick=${() => box.current.close()}>Not now</button>
      <button class="primary" disabled=${isBusy || Boolean(error)} onClick=${begin}>${isBusy ? "Begins…" : "Begin the branch"}</button></div>
  </dialog>`;
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
