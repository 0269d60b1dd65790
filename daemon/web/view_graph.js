// The call graph: layered, the functions with most time, edge width = time, label = calls. A table says the same.
import * as api from "./api.js";
import { el, replace, svg } from "./dom.js";
import * as format from "./format.js";
import { layout } from "./layout.js";
import { Camera } from "./picture.js";
import { sampled } from "./question.js";
import { another, go, note, question, to } from "./state.js";
import { plain, twin } from "./table.js";

const clip = (text, n) => (text.length > n ? `${text.slice(0, n - 1)}…` : text);

/** Members of a cycle as one node, unless the cycle is open. */
function fold(graph, open) {
  const of = new Map();
  const groups = new Map();
  for (const n of graph.nodes) {
    const cycle = n.detail__cycle;
    if (!cycle || open.has(String(cycle))) {
      of.set(n.id, n.id);
      continue;
    }
    const id = `cycle-${cycle}`;
    of.set(n.id, id);
    const g = groups.get(id) ?? { id, title: `cycle ${cycle}`, cycle: String(cycle), mainstat: 0, members: [], calls: 0, self: 0 };
    g.members.push(n);
    g.mainstat += n.mainstat;
    g.self += n.detail__self_seconds;
    groups.set(id, g);
  }
  const nodes = [...graph.nodes.filter((n) => of.get(n.id) === n.id), ...groups.values()];
  const edges = new Map();
  for (const e of graph.edges) {
    const source = of.get(e.source);
    const target = of.get(e.target);
    if (source === target) continue;
    const key = `${source} ${target}`;
    const sum = edges.get(key) ?? { source, target, mainstat: 0, secondarystat: 0, inside: e.detail__inside_cycle };
    sum.mainstat += e.mainstat;
    sum.secondarystat += e.secondarystat;
    edges.set(key, sum);
  }
  return { nodes, edges: [...edges.values()] };
}

function smooth(points) {
  let d = `M${points[0].x},${points[0].y}`;
  for (let i = 1; i < points.length; i++) {
    const a = points[i - 1];
    const b = points[i];
    const mid = (a.y + b.y) / 2;
    d += `C${a.x},${mid} ${b.x},${mid} ${b.x},${b.y}`;
  }
  return d;
}

function drawEdge(e, places, total, look) {
  const points = places.lines.get(`${e.source} ${e.target}`);
  if (!points) return null;
  const share = total > 0 ? e.secondarystat / total : 0;
  const middle = points.length % 2 ? points[(points.length - 1) / 2] : { x: (points[points.length / 2 - 1].x + points[points.length / 2].x) / 2, y: (points[points.length / 2 - 1].y + points[points.length / 2].y) / 2 };
  const end = points[points.length - 1];
  const before = points[points.length - 2];
  const up = before.y > end.y;
  const trimmed = [...points.slice(0, -1), { x: end.x, y: end.y + (up ? 1 : -1) * (end.h / 2 + 4) }];
  return svg(
    "g",
    { class: e.inside ? "edge inside" : "edge" },
    svg("path", { d: smooth(trimmed), "stroke-width": (1 + 7 * Math.sqrt(share)).toFixed(2), "marker-end": "url(#arrow)" }),
    svg("text", { x: middle.x, y: middle.y, "text-anchor": "middle" }, look.mark + format.short(e.mainstat), svg("title", {}, `${look.mark}${format.count(e.mainstat)} calls, ${look.amount(e.secondarystat)}`)),
  );
}

function drawNode(n, place, total, look, open, follow) {
  const share = total > 0 ? Math.min(1, n.mainstat / total) : 0;
  const cycle = n.members !== undefined;
  const title = clip(n.title, 36);
  const times = cycle ? `${n.members.length} functions, ${look.amount(n.mainstat)}` : `${look.amount(n.mainstat)} · self ${look.amount(n.detail__self_seconds)}`;
  const label = `${title} ${times}, ${format.percent(100 * share)}${cycle ? ", opens in place" : `, ${look.mark}${format.count(n.secondarystat)} calls`}`;
  const act = () => (cycle ? open(n.cycle) : follow(n));
  const keys = (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      event.stopPropagation();
      act();
    }
  };
  return svg(
    "g",
    { class: cycle ? "node cycle" : "node", tabindex: 0, role: "link", onclick: act, onkeydown: keys, transform: `translate(${place.x - n.w / 2},${place.y - n.h / 2})` },
    svg("rect", { width: n.w, height: n.h, rx: cycle ? 14 : 4, style: `--share:${(100 * share).toFixed(1)}%` }),
    svg("text", { x: n.w / 2, y: 18, "text-anchor": "middle", class: "title" }, title),
    svg("text", { x: n.w / 2, y: 35, "text-anchor": "middle" }, times),
    svg("title", {}, label),
  );
}

function picture(graph, total, state, redraw) {
  const look = lookOf(graph);
  const open = new Set(state.zoom.split(",").filter(Boolean));
  const { nodes, edges } = fold(graph, open);
  for (const n of nodes) Object.assign(n, { w: Math.max(170, Math.min(310, 8 * Math.min(36, n.title.length) + 24)), h: 44 });
  const places = layout(nodes, edges);
  const top = nodes.reduce((a, b) => (b.mainstat > a.mainstat && places.places.get(b.id).y <= places.places.get(a.id).y ? b : a));
  const view = svg(
    "svg",
    { class: "graph", preserveAspectRatio: "xMidYMin meet", role: "group", "aria-label": "Call graph. A table with the same arcs follows." },
    svg("defs", {}, svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 4, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" }, svg("path", { d: "M0,0L8,4L0,8z" }))),
    edges.map((e) => drawEdge(e, places, total, look)),
    nodes.map((n) =>
      drawNode(n, places.places.get(n.id), total, look, (cycle) => redraw([...open, cycle].join(",")), (node) => go({ ...another("report"), fn: node.detail__address, of: node.detail__build_id === state.build ? "" : node.detail__build_id ?? "" })),
    ),
  );
  return { view, camera: new Camera(view, places.width, places.height, state.at, (at) => note(state, { at }), places.places.get(top.id).x), closable: open.size > 0 };
}

/** How amounts read, and what stands before calls that were sampled. */
const lookOf = (graph) => ({ amount: format.amounts(graph.dimension), mark: sampled({ provenance: graph }) ? "~" : "" });

function table(graph, state) {
  const look = lookOf(graph);
  const name = new Map(graph.nodes.map((n) => [n.id, n.title]));
  const edges = [...graph.edges].sort((a, b) => b.secondarystat - a.secondarystat || b.mainstat - a.mainstat);
  return twin(state, "arcs", `${edges.length} arcs`, () =>
    plain("Arcs by time", [["Caller"], ["Callee"], [`${look.mark}Calls`, 1], ["Time", 1]], edges.map((e) => [name.get(e.source), name.get(e.target), look.mark + format.count(e.mainstat), e.detail__inside_cycle ? "inside a cycle" : look.amount(e.secondarystat)])),
  );
}

export async function draw(main, state, signal) {
  const nodes = Math.min(400, Number(state.nodes) || 40);
  const graph = await api.json(api.path(state.build, "/report", { ...question(state), format: "nodegraph", limit: nodes }), signal);
  const total = Math.max(0, ...graph.nodes.map((n) => (n.detail__percent > 0 ? (100 * n.mainstat) / n.detail__percent : 0)));
  const box = el("div", { class: "picture" });
  const show = (zoom) => {
    state.zoom = zoom;
    const { view, camera, closable } = picture(graph, total, state, (next) => go({ zoom: next, at: "" }));
    const button = (label, action) => el("button", { type: "button", onclick: action }, label);
    replace(box, el("div", { class: "tools", role: "toolbar", "aria-label": "Picture" }, button("+", () => camera.zoom(0.8)), button("−", () => camera.zoom(1.25)), button("Whole", () => camera.reset()), closable ? button("Close cycles", () => go({ zoom: "", at: "" })) : null), view);
  };
  const more = (n, text) => el("a", to(state, { nodes: String(n), at: "" }), text);
  replace(
    main,
    el("div", { class: "bar" }, el("h2", {}, "Call graph"), el("p", {}, `The ${graph.nodes.length} functions with most time`, graph.not_shown ? [`; ${format.count(graph.not_shown)} others are not shown. Show `, more(nodes * 2, "more"), nodes > 10 ? [" or ", more(Math.ceil(nodes / 2), "fewer")] : null] : null, ".")),
    graph.nodes.length ? box : el("p", {}, "No function has counts in this window."),
    table(graph, state),
  );
  if (graph.nodes.length) show(state.zoom);
}
