// A program: its graph, what its models may do beside what they did, its problems, and a form for each handler.

import { html, useEffect, useMemo, useState } from "../vendor/preact.js";
import { emptyValue, Field, formOf, payloadOf } from "./form.js";
import { SourceView } from "./source_view.js";
import { NO_FILTER } from "./steps.js";
import { plain } from "./texts.js";
import { Empty, Problem, useAnswer } from "./ui.js";

const LETTER = 6.6;
const SMALL = 6;
const LINE = 15;
const MOST_LINES = 7;
const WORDS = { runs: "runs", delegates: "may ask", calls: "calls", uses: "uses", members: "", has: "" };

export function ProgramScreen({ data, name, go }) {
  const [told, error] = useAnswer(() => data.program(), []);
  if (error) return html`<main><${Problem} error=${error} /></main>`;
  if (!told) return html`<main><${Empty}>Reading the programs…<//></main>`;
  const programs = told.programs;
  const program = programs.find((each) => each.name === name) || programs[0];
  if (!program) return html`<main><${Empty}>The service serves no program. Name one: <code>koi serve http FILE.koi</code><//></main>`;
  return html`<main class="program-screen">
    <div class="row"><h1>Program</h1>${programs.length > 1 && html`<select aria-label="program" value=${program.name} onChange=${(event) => go(event.target.value)}>${programs.map((each) => html`<option>${each.name}</option>`)}</select>`}
      <b>${program.name}</b></div>
    ${program.ok === false && html`<${Problem} error=${{ message: program.error?.message || String(program.error || "the program has errors"), help: program.error?.help }} />`}
    <${Program} key=${program.name} data=${data} program=${program} />
  </main>`;
}

function Program({ data, program }) {
  const [source, error] = useAnswer(() => data.programSource(program.name), [program.name]);
  const [place, setPlace] = useState(null);
  const show = (handler) => {
    const found = source?.handlers[handler];
    if (found) setPlace({ file: found.file, line: found.line, first: found.line, end: found.end, isExact: true, name: source.files[found.file].name });
  };
  return html`<div class="program-panes">
    <section class="pane-source" aria-label="source"><${SourceView} run=${null} source=${source} error=${error} place=${place} filter=${NO_FILTER} /></section>
    <div class="program">
      ${source && source.problems.length > 0 && html`<section><h2>Problems</h2><ul class="problems">${source.problems.map((each, at) => html`<li key=${at} class=${each.severity}>
        <button class="link" disabled=${each.file === null} onClick=${() => setPlace({ file: each.file, line: each.line, first: each.line, end: each.line })}>line ${each.line}</button> ${each.code} ${each.message}${each.help ? html`<div class="muted">${each.help}</div>` : ""}</li>`)}</ul></section>`}
      <section><h2>Run a handler</h2><${Handlers} data=${data} program=${program} onShow=${show} /></section>
      <${Graph} ask=${() => data.programGraph(program.name)} id=${program.name} onChoose=${(node) => node.kind === "agent" && show(firstHandler(source, node.name))} />
      <${May} ask=${() => data.programAudit(program.name)} id=${program.name} />
    </div></div>`;
}

function firstHandler(source, agent) {
  return Object.keys(source?.handlers || {}).find((name) => name.startsWith(`${agent}.`)) || "";
}

// ---------------------------------------------------------------- forms

function Handlers({ data, program, onShow }) {
  const handlers = (program.agents || []).flatMap((agent) => agent.handlers.filter((each) => !each.private).map((each) => ({ ...each, agent, full: `${agent.name}.${each.name}` })));
  const [name, setName] = useState(handlers[0]?.full || "");
  const handler = handlers.find((each) => each.full === name);
  if (!handler) return html`<${Empty}>The program has no handlers that can be called.<//>`;
  const choose = (event) => {
    setName(event.target.value);
    onShow(event.target.value);
  };
  return html`<div><select aria-label="handler" value=${name} onChange=${choose}>${handlers.map((each) => html`<option key=${each.full} value=${each.full}>${each.full}</option>`)}</select>
    <span class="muted"> ${handler.playbook ? "playbook" : "code"} · ${handler.affordance || handler.agent.affordance || ""} ${handler.gives ? `· gives ${handler.gives}` : ""}</span>
    <${HandlerForm} key=${name} data=${data} program=${program} handler=${handler} /></div>`;
}

function HandlerForm({ data, program, handler }) {
  const field = useMemo(() => formOf(handler.schema), [handler]);
  const hasInput = Object.keys(handler.schema || {}).length > 0;
  const [value, setValue] = useState(() => emptyValue(field));
  const [error, setError] = useState(null);
  const [isBusy, setBusy] = useState(false);
  const start = async (event) => {
    event.preventDefault();
    setError(null);
    setBusy(true);
    try {
      const payload = hasInput ? payloadOf(field, value) : undefined;
      const made = await data.start({ program: program.name, handler: handler.full, ...(payload === undefined ? {} : { payload }) });
      location.hash = `#/run/${made.id}`;
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  return html`<form class="handler-form" onSubmit=${start}>
    ${hasInput && html`<${Field} name="payload" field=${field} value=${value} isRequired=${true} onChange=${setValue} />`}
    ${error && html`<${Problem} error=${error} />`}
    <div class="row"><button class="primary" disabled=${isBusy}>${isBusy ? "Begins…" : `Run ${handler.full}`}</button></div></form>`;
}

// ---------------------------------------------------------------- the graph

export function Graph({ ask, id, onChoose, state }) {
  const [graph, error] = useAnswer(ask, [id]);
  const [layout, setLayout] = useState(null);
  useEffect(() => {
    let isCurrent = true;
    if (graph) layOut(graph, state ? callCounts(state) : new Map()).then((made) => isCurrent && setLayout(made));
    return () => { isCurrent = false; };
  }, [graph]);
  return html`<section><h2>Graph</h2>${error ? html`<${Problem} error=${error} />` : layout ? html`<${Drawing} layout=${layout} onChoose=${onChoose} />` : html`<${Empty}>…<//>`}</section>`;
}

/** The lines of a box; what the role of an agent permits stands in its own box. */
function linesOf(node, graph) {
  const of = node.role ? ` : ${node.role}` : "";
  const role = graph.nodes.find((each) => each.kind === "role" && each.name === node.role);
  const details = [...(role?.details.length ? [`can ${role.details.join(", ")}`] : []), ...node.details];
  const head = node.kind === "run" ? "run" : `${node.kind} ${node.name}${of}`;
  const lines = [head, node.text, ...details.slice(0, MOST_LINES), details.length > MOST_LINES ? "…" : ""];
  return lines.filter(Boolean).map((line) => shortLine(line, 40));
}

function shortLine(line, longest) {
  return line.length > longest ? `${line.slice(0, longest - 1)}…` : line;
}

function labelOf(edge, counts) {
  const calls = edge.kind === "delegates" || edge.kind === "calls" ? counts.get(`${edge.source}\n${edge.target}`) : 0;
  const names = edge.kind === "uses" || edge.kind === "members" ? "" : edge.labels.slice(0, 3).join(", ");
  return shortLine([WORDS[edge.kind], calls ? `${calls}×` : "", names].filter(Boolean).join(" "), 30);
}

async function layOut(graph, counts) {
  const dagre = (await import("../vendor/dagre.js")).default;
  const drawn = new dagre.graphlib.Graph({ multigraph: true }).setGraph({ rankdir: "LR", nodesep: 16, ranksep: 34, edgesep: 12, marginx: 8, marginy: 8 });
  for (const node of graph.nodes) {
    if (node.kind === "role") continue;
    const lines = linesOf(node, graph);
    drawn.setNode(node.id, { node, lines, width: Math.max(...lines.map((line) => line.length)) * LETTER + 18, height: lines.length * LINE + 12 });
  }
  for (const [at, edge] of graph.edges.entries()) {
    const label = labelOf(edge, counts);
    if (edge.kind !== "has") drawn.setEdge(edge.source, edge.target, { edge, label, width: label.length * SMALL + 8, height: LINE, labelpos: "c" }, String(at));
  }
  dagre.layout(drawn);
  const { width, height } = drawn.graph();
  return { width, height, nodes: drawn.nodes().map((each) => drawn.node(each)), edges: drawn.edges().map((each) => drawn.edge(each)) };
}

function Drawing({ layout, onChoose }) {
  return html`<div class="drawing"><svg width=${layout.width} height=${layout.height} viewBox=${`0 0 ${layout.width} ${layout.height}`} role="img" aria-label="graph of the program">
    <defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" class="arrow" /></marker></defs>
    ${layout.edges.map(({ edge, points }, at) => html`<path key=${at} class=${`edge edge-${edge.kind}`} d=${curve(points)} marker-end=${edge.kind === "members" ? "" : "url(#arrow)"} />`)}
    ${layout.edges.map(({ label, x, y }, at) => label && html`<g key=${at}><rect class="edge-ground" x=${x - (label.length * SMALL) / 2 - 3} y=${y - 7} width=${label.length * SMALL + 6} height="14" />
      <text class="edge-label" x=${x} y=${y + 3} text-anchor="middle">${label}</text></g>`)}
    ${layout.nodes.map(({ node, lines, x, y, width, height }) => html`<g key=${node.id} class=${`node node-${node.kind}`} onClick=${() => onChoose && onChoose(node)} transform=${`translate(${x - width / 2} ${y - height / 2})`}>
      <title>${node.name} ${node.text}</title><rect width=${width} height=${height} rx="5" />
      ${lines.map((line, at) => html`<text key=${at} x="9" y=${16 + at * LINE} class=${at ? "" : "first"}>${line}</text>`)}</g>`)}
  </svg></div>`;
}

/** A smooth line through all points. */
function curve(points) {
  const at = (x, y) => `${x.toFixed(1)} ${y.toFixed(1)}`;
  let line = `M${at(points[0].x, points[0].y)}`;
  for (let index = 0; index < points.length - 1; index += 1) {
    const [before, from, to, after] = [points[index - 1] || points[index], points[index], points[index + 1], points[index + 2] || points[index + 1]];
    line += `C${at(from.x + (to.x - before.x) / 6, from.y + (to.y - before.y) / 6)} ${at(to.x - (after.x - from.x) / 6, to.y - (after.y - from.y) / 6)} ${at(to.x, to.y)}`;
  }
  return line;
}

/** How often agents asked each other in a run, by the ids of their nodes. */
export function callCounts(state) {
  const counts = new Map();
  for (const node of state.nodes) {
    if (node.kind !== "handler") continue;
    let outer = node.outer === null ? null : state.nodes[node.outer];
    while (outer && outer.kind !== "handler") outer = outer.outer === null ? null : state.nodes[outer.outer];
    const key = `${outer ? `agent:${outer.agent}` : "run:run"}\nagent:${node.agent}`;
    counts.set(key, (counts.get(key) || 0) + 1);
  }
  return counts;
}

// ---------------------------------------------------------------- what models may do, and did

export function May({ ask, id, state }) {
  const [isWanted, setWanted] = useState(false);
  const [audited, error] = useAnswer(() => (isWanted ? ask() : undefined), [id, isWanted]);
  const agents = audited?.agents || audited;
  return html`<section><h2>May do${state ? ", and did" : ""}</h2>
    ${!isWanted && html`<button onClick=${() => setWanted(true)}>Look at the permissions</button> <span class="muted">as koi audit: the program is loaded, nothing of it is run</span>`}
    ${error && html`<${Problem} error=${error} />`}
    ${isWanted && !agents && !error && html`<${Empty}>…<//>`}
    ${agents && agents.map((agent) => html`<${Agent} key=${agent.agent} agent=${agent} did=${state ? didOf(state, agent.agent) : null} />`)}</section>`;
}

/** How often an agent did what, by intent. */
export function didOf(state, agent) {
  const did = new Map();
  for (const node of state.nodes) if (node.agent === agent && node.kind === "action") did.set(node.title, (did.get(node.title) || 0) + 1);
  return did;
}

function Agent({ agent, did }) {
  const used = (name) => (did ? did.get(name) || 0 : null);
  const list = (names) => names.map((name) => {
    const times = used(name);
    return html`<span key=${name} class=${times === 0 ? "permission unused" : "permission"} title=${times === 0 ? "not used in this run" : ""}>${name}${times ? html` <b>${plain(times)}×</b>` : ""}</span>`;
  });
  const functions = Object.entries(agent.functions || {}).flatMap(([permission, names]) => names.map((name) => (permission ? `${name} (${permission})` : name)));
  const commands = agent.commands.others === "deny" ? "" : `${agent.commands.allowed.join(", ") || "none without asking"}; others: ${agent.commands.others}`;
  const servers = (agent.mcp || []).map((server) => `${server.member || server.server} (${server.problem || [server.transport, server.command || server.url || ""].join(" ")})`);
  const hosts = agent.hosts.public ? ["public hosts", ...agent.hosts.allowed].join(", ") : "";
  const rows = [["actions", list(agent.actions)], ["may ask", list(agent.delegates)], ["skills", functions.join(", ")], ["servers", servers.join(", ")], ["commands", commands], ["hosts", hosts]];
  return html`<div class="agent-may"><h3>${agent.agent} <span class="muted">: ${agent.role} { ${agent.capabilities.join(", ")} }</span></h3>
    <table class="facts"><tbody>${rows.filter(([, value]) => value && value.length).map(([name, value]) => html`<tr key=${name}><th scope="row">${name}</th><td>${value}</td></tr>`)}</tbody></table></div>`;
}
