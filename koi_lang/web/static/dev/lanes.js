// The timeline: a lane an agent, drawn on a canvas, so that ten thousand bars move as ten do.

import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { duration } from "./texts.js";

const LABEL = 132;
const ROW = 16;
const PAD = 5;
const RULER = 18;
const NARROWEST = 2;
const IDLE_S = 600;
const COLOURS = ["handler", "model", "action", "effect", "failed", "wait", "point", "cut", "ink", "line", "ground", "accent", "muted"];

/** Where something stands along the line: seconds, or entries, which shows what was over too soon. */
export function extent(node, scale, state, fold = (time) => time) {
  return scale === "steps"
    ? [node.n, node.endN ?? state.last]
    : [fold(node.t0), fold(node.t1 ?? Math.max(state.seconds, node.t0))];
}

/** Long stretches in which nothing was recorded, each folded to a sliver: `gaps`, and time to the place of it and back. */
export function foldIdle(state) {
  const times = state.nodes.flatMap((node) => [node.t0, node.t1 ?? node.t0]).sort((one, two) => one - two);
  const gaps = times.map((from, at) => ({ from, to: times[at + 1] ?? from })).filter(({ from, to }) => to - from > IDLE_S);
  const idle = gaps.reduce((sum, { from, to }) => sum + to - from, 0);
  const sliver = Math.max(0.001, (state.seconds - idle) * 0.08);
  const saved = (time, { from, to }) => Math.max(0, Math.min(time, to) - from) * (1 - sliver / (to - from));
  const fold = (time) => gaps.reduce((left, gap) => left - saved(time, gap), time);
  const unfold = (place) => gaps.reduce((time, gap) => (time > gap.from + sliver ? time + (gap.to - gap.from) - sliver : time), place);
  return { gaps, fold, unfold };
}

/** Lanes from above: `[{agent, top, high}]`, with the height of all. */
export function layOut(state) {
  let top = RULER;
  const lanes = [];
  for (const lane of state.lanes.values()) {
    if (lane.agent === "" && state.lanes.size > 1 && !hasBars(state)) continue;
    const high = lane.rows * ROW + 2 * PAD;
    lanes.push({ agent: lane.agent, top, high });
    top += high;
  }
  return { lanes, high: top };
}

function hasBars(state) {
  return state.nodes.some((node) => node.agent === "" && node.kind !== "point");
}

export function kindOf(node) {
  if (node.status === "failed") return "failed";
  if (node.kind === "handler") return "handler";
  if (node.status === "cut") return "cut";
  return node.kind;
}

function coloursOf(element) {
  const style = getComputedStyle(element);
  return Object.fromEntries(COLOURS.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

export function Lanes({ run, scale, chosen, isChosen, onChoose, follow, setFollow }) {
  const canvas = useRef(null);
  const box = useRef(null);
  const [view, setView] = useState(null);
  const [tip, setTip] = useState(null);
  const [wide, setWide] = useState(600);
  const state = run.state;
  const version = run.version.value;
  const { gaps, fold, unfold } = useMemo(() => foldIdle(state), [state, version]);
  const whole = scale === "steps" ? [0, Math.max(state.last, 1)] : [0, Math.max(fold(state.seconds), 0.001)];
  const shown = view && !follow ? view : view ? [whole[1] - (view[1] - view[0]), whole[1]] : whole;
  const { lanes, high } = layOut(state);
  const tops = new Map(lanes.map((lane) => [lane.agent, lane.top]));
  const toX = (value) => LABEL + ((value - shown[0]) / (shown[1] - shown[0] || 1)) * (wide - LABEL - 8);

  useEffect(() => setView(null), [scale]);
  useEffect(() => {
    const watch = new ResizeObserver(() => box.current && setWide(box.current.clientWidth));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    const frame = requestAnimationFrame(() => draw());
    return () => cancelAnimationFrame(frame);
  }, [version, wide, shown[0], shown[1], chosen, isChosen, scale]);

  function draw() {
    const element = canvas.current;
    if (!element) return;
    const ratio = window.devicePixelRatio || 1;
    element.width = wide * ratio;
    element.height = high * ratio;
    const pen = element.getContext("2d");
    pen.scale(ratio, ratio);
    const colours = coloursOf(element);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    drawGround(pen, colours);
    pen.save();
    pen.beginPath();
    pen.rect(LABEL, 0, wide - LABEL, high);
    pen.clip();
    for (const layer of [["handler"], ["model", "action", "effect"], ["wait"], ["point"]]) {
      for (const node of state.nodes) if (layer.includes(node.kind)) drawNode(pen, node, colours);
    }
    pen.restore();
  }

  function drawGround(pen, colours) {
    for (const [at, lane] of lanes.entries()) {
      pen.fillStyle = colours.line;
      pen.globalAlpha = at % 2 ? 0.3 : 0;
      pen.fillRect(0, lane.top, wide, lane.high);
      pen.globalAlpha = 1;
      pen.fillRect(0, lane.top - 0.5, wide, 1);
      pen.fillStyle = colours.ink;
      const name = lane.agent || "the run";
      pen.fillText(name.length > 20 ? `${name.slice(0, 19)}…` : name, 8, lane.top + PAD + ROW / 2, LABEL - 12);
    }
    pen.fillStyle = colours.muted;
    for (const { from, to } of scale === "steps" ? [] : gaps) {
      const [left, right] = [Math.max(LABEL, toX(fold(from))), toX(fold(to))];
      if (right <= left) continue;
      pen.globalAlpha = 0.25;
      pen.fillRect(left, RULER, right - left, high);
      pen.globalAlpha = 1;
      pen.fillText(`⋯ ${duration(to - from)}`, left, RULER / 2, Math.max(76, right - left));
    }
    const step = niceStep((shown[1] - shown[0]) / Math.max(2, (wide - LABEL) / 90));
    for (let value = Math.ceil(shown[0] / step) * step; value <= shown[1]; value += step) {
      const x = toX(value);
      const time = scale === "steps" ? value : unfold(value);
      if (x < LABEL || (scale !== "steps" && gaps.some(({ from, to }) => time >= from && x < toX(fold(to)) + 2 && x >= toX(fold(from)) - 40))) continue;
      pen.globalAlpha = 0.5;
      pen.fillRect(x, RULER - 4, 1, high);
      pen.globalAlpha = 1;
      const text = scale === "steps" ? `#${Math.round(value)}` : rulerText(time, step);
      if (x + 40 < wide) pen.fillText(text, x + 3, RULER / 2);
    }
  }

  function drawNode(pen, node, colours) {
    const place = placeOf(node);
    if (!place || place.x > wide || place.x + place.wide < LABEL) return;
    const { x, y, wide: length, high: tall } = place;
    const isDim = isChosen && !isChosen(node);
    pen.globalAlpha = (isDim ? 0.18 : 1) * (node.recalled ? 0.45 : 1);
    if (node.kind === "point") {
      if (node.minor) return;
      pen.fillStyle = node.status === "failed" ? colours.failed : colours.point;
      pen.beginPath();
      pen.arc(x, y + tall / 2, node.index === chosen ? 4 : 2.5, 0, 7);
      pen.fill();
      pen.globalAlpha = 1;
      return;
    }
    pen.fillStyle = colours[kindOf(node)] || colours.action;
    if (node.kind === "handler") pen.globalAlpha *= node.status === "failed" ? 0.4 : 0.6;
    pen.beginPath();
    pen.roundRect(x, y, length, tall, 3);
    pen.fill();
    if (node.status === "open") hatch(pen, place, colours);
    pen.globalAlpha = isDim ? 0.3 : 1;
    if (length > 34 && node.kind !== "handler") {
      pen.fillStyle = "#fff";
      pen.save();
      pen.clip();
      pen.fillText(node.title, Math.max(x, LABEL) + 4, y + tall / 2 + 0.5);
      pen.restore();
    }
    if (node.index === chosen) {
      pen.globalAlpha = 1;
      pen.strokeStyle = colours.accent;
      pen.lineWidth = 2;
      pen.strokeRect(x - 1, y - 1, length + 2, tall + 2);
    }
    pen.globalAlpha = 1;
  }

  function hatch(pen, { x, y, wide: length, high: tall }, colours) {
    pen.save();
    pen.clip();
    pen.strokeStyle = colours.ground;
    pen.globalAlpha = 0.45;
    pen.lineWidth = 2;
    const from = Math.max(x, LABEL);
    const to = Math.min(x + length, wide);
    for (let at = from - tall; at < to; at += 7) {
      pen.beginPath();
      pen.moveTo(at, y + tall);
      pen.lineTo(at + tall, y);
      pen.stroke();
    }
    pen.restore();
    pen.beginPath();
    pen.roundRect(x, y, length, tall, 3);
  }

  function placeOf(node) {
    const top = tops.get(node.agent);
    if (top === undefined) return null;
    const [from, to] = extent(node, scale, state, fold);
    const x = toX(from);
    const inset = node.kind === "handler" ? 0 : 2;
    const y = top + PAD + node.row * ROW + inset;
    return { x, y, wide: Math.max(NARROWEST, toX(to) - x), high: ROW - 2 - 2 * inset };
  }

  function nodeAt(event) {
    const bounds = canvas.current.getBoundingClientRect();
    const [px, py] = [event.clientX - bounds.left, event.clientY - bounds.top];
    let found = null;
    for (const node of state.nodes) {
      const place = placeOf(node);
      if (!place || (node.kind === "point" && node.minor)) continue;
      const slack = node.kind === "point" ? 4 : 2;
      const isIn = px >= place.x - slack && px <= place.x + (node.kind === "point" ? 4 : place.wide + slack)
        && py >= place.y - 1 && py <= place.y + place.high + 2;
      if (isIn && px >= LABEL && (!found || rank(node) >= rank(found))) found = node;
    }
    return found && { node: found, x: px, y: py };
  }

  function zoom(factor, at = (shown[0] + shown[1]) / 2) {
    const size = Math.min((shown[1] - shown[0]) * factor, whole[1] - whole[0]);
    if (size >= (whole[1] - whole[0]) * 0.999) {
      setView(null);
      return;
    }
    const from = Math.min(Math.max(whole[0], at - (at - shown[0]) * factor), whole[1] - size);
    setView([from, from + size]);
  }

  function onWheel(event) {
    if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaX) < Math.abs(event.deltaY)) return;
    event.preventDefault();
    const bounds = canvas.current.getBoundingClientRect();
    const at = shown[0] + ((event.clientX - bounds.left - LABEL) / (wide - LABEL - 8)) * (shown[1] - shown[0]);
    if (event.ctrlKey) zoom(event.deltaY > 0 ? 1.25 : 0.8, at);
    else pan(((event.deltaX || event.deltaY) / (wide - LABEL)) * (shown[1] - shown[0]));
  }

  function pan(by) {
    if (!view) return;
    setFollow(false);
    const size = shown[1] - shown[0];
    const from = Math.min(Math.max(whole[0], shown[0] + by), whole[1] - size);
    setView([from, from + size]);
  }

  function onDown(event) {
    const begin = event.clientX;
    const from = shown;
    let hasMoved = false;
    const move = (next) => {
      const by = ((begin - next.clientX) / (wide - LABEL)) * (from[1] - from[0]);
      hasMoved = hasMoved || Math.abs(begin - next.clientX) > 4;
      if (hasMoved && view) {
        setFollow(false);
        const size = from[1] - from[0];
        const start = Math.min(Math.max(whole[0], from[0] + by), whole[1] - size);
        setView([start, start + size]);
      }
    };
    const up = (last) => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", up);
      const hit = hasMoved ? null : nodeAt(last);
      if (hit) onChoose(hit.node.index);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", up);
  }

  useEffect(() => {
    const element = canvas.current;
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  });

  return html`<div class="lanes" ref=${box}>
    <div class="lane-tools">
      <button class="quiet" title="closer" aria-label="zoom in" onClick=${() => zoom(0.6)}>+</button>
      <button class="quiet" title="farther" aria-label="zoom out" onClick=${() => zoom(1.7)}>−</button>
      <button class="quiet" disabled=${!view} onClick=${() => setView(null)}>all</button>
      <button class="quiet" aria-label="earlier" disabled=${!view} onClick=${() => pan(-(shown[1] - shown[0]) / 2)}>‹</button>
      <button class="quiet" aria-label="later" disabled=${!view} onClick=${() => pan((shown[1] - shown[0]) / 2)}>›</button>
    </div>
    <div class="lane-box"><canvas ref=${canvas} class="lane-canvas" style=${{ width: `${wide}px`, height: `${high}px` }} role="img"
      aria-label=${`timeline of ${lanes.length} agents; the list of steps below tells the same`}
      onPointerDown=${onDown} onMouseMove=${(event) => setTip(nodeAt(event))} onMouseLeave=${() => setTip(null)}></canvas></div>
    ${tip && html`<div class="tip" style=${{ left: `${Math.min(tip.x + 12, wide - 260)}px`, top: `${tip.y + 34}px` }}>
      <b>${tip.node.title}</b> ${tip.node.t1 === null ? "under way" : duration(tip.node.t1 - tip.node.t0)}
      <div>${tip.node.error || tip.node.detail}</div></div>`}
  </div>`;
}

function rank(node) {
  return { handler: 0, effect: 1, action: 1, model: 1, wait: 2, point: 3 }[node.kind] * 1000 + node.depth;
}

function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least || 1));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least) || power * 10;
}

function rulerText(value, step) {
  if (step >= 60) return duration(value);
  return step < 0.0999 ? `${Math.round(value * 1000)} ms` : `${value.toFixed(step < 1 ? 1 : 0)} s`;
}
