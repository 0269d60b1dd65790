// Two call graphs as one: the functions with the most time on either side; each box and edge says which side has more.
import * as api from "./api.js";
import { kindOf, legend, points, signOf, strength } from "./compare_flame.js";
import { sideQuestion } from "./compare_sides.js";
import { el, replace, svg } from "./dom.js";
import * as format from "./format.js";
import { clip } from "./graph_draw.js";
import { busiest, layout } from "./graph_layout.js";
import { another, go } from "./state.js";
import { pictureTable, plain } from "./table.js";

const NODES = 40; // functions of each side
const HIGH = 0.72; // of the window: the height of the picture
const SIZE = { w: 200, h: 42 };

const ask = (state, side, signal) => {
  const build = side === "a" ? state.build : state.against;
  const params = { ...sideQuestion(state, side), format: "nodegraph", limit: NODES, names: "short" };
  return api.json(api.path(build, "/report", params), signal);
};

/** Adds the nodes and edges of a side, as shares of its time. */
function gather(graph, nodes, edges, side) {
  const total =
    Math.max(0, ...graph.nodes.map((n) => (n.detail__percent > 0 ? (100 * n.total_seconds) / n.detail__percent : 0))) ||
    1;
  const names = new Map();
  for (const n of graph.nodes) {
    const id = n.detail__name ?? n.title;
    names.set(n.id, id);
    const node = nodes.get(id) ?? nodes.set(id, { id, title: n.title, a: 0, b: 0, ...SIZE }).get(id);
    node[side] += n.total_seconds / total;
    node[`at_${side}`] = { fn: n.detail__address, of: n.detail__build_id };
  }
  for (const e of graph.edges) {
    const [source, target] = [names.get(e.source), names.get(e.target)];
    if (source === undefined || target === undefined || source === target) continue;
    const key = `${source}\n${target}`;
    const edge = edges.get(key) ?? edges.set(key, { source, target, a: 0, b: 0, calls_a: 0, calls_b: 0 }).get(key);
    edge[side] += e.total_seconds / total;
    edge[`calls_${side}`] += Number(e.calls);
  }
}

const line = (places) => places.map((p, i) => `${i ? "L" : "M"}${p.x},${p.y}`).join("");

function drawEdge(e, place) {
  const d = e.b - e.a;
  const about = `${e.source} → ${e.target}: ${format.percent(100 * e.a, 200)} of A, ${format.percent(100 * e.b, 200)} of B; calls ${format.count(e.calls_a)} and ${format.count(e.calls_b)}`;
  const middle = place.points[Math.floor(place.points.length / 2)];
  return svg(
    "g",
    { class: `edge ${kindOf(d)}` },
    svg("path", {
      d: line(place.points),
      "stroke-width": (1 + 7 * Math.sqrt(Math.max(e.a, e.b))).toFixed(2),
      "marker-end": "url(#arrow)",
    }),
    svg("text", { x: place.x ?? middle.x, y: (place.y ?? middle.y) + 4, "text-anchor": "middle" }, e.text),
    svg("title", {}, about),
  );
}

const share = (x) => (x > 0 ? format.percent(100 * x, 200) : "–");
const change = (n) => `${signOf(n.b - n.a)} ${points(n.b - n.a)} · ${share(n.a)} → ${share(n.b)}`;

function drawNode(n, place, state) {
  const d = n.b - n.a;
  const where = n.at_a ? { build: state.build, ...n.at_a } : { build: state.against, ...n.at_b };
  const open = () =>
    go({
      ...another("report"),
      ...(n.at_a ? {} : sideQuestion(state, "b")),
      ...where,
      of: where.of === where.build ? "" : where.of,
    });
  const keys = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    open();
  };
  const alone = n.at_a && n.at_b ? "" : n.at_a ? ", not among the first of B" : ", not among the first of A";
  const about = `${n.id}: ${format.percent(100 * n.a, 200)} of A, ${format.percent(100 * n.b, 200)} of B, ${points(d)} points${alone}`;
  return svg(
    "g",
    {
      class: `node ${kindOf(d)}`,
      tabindex: 0,
      role: "link",
      "aria-label": about,
      transform: `translate(${place.x - n.w / 2},${place.y - n.h / 2})`,
      onclick: open,
      onkeydown: keys,
    },
    svg("rect", { width: n.w, height: n.h, rx: 4, style: `--strong:${strength(d)}%` }),
    svg("text", { x: n.w / 2, y: 17, "text-anchor": "middle", class: "title" }, clip(n.title, 22)),
    svg("text", { x: n.w / 2, y: 33, "text-anchor": "middle" }, change(n)),
    svg("title", {}, about),
  );
}

function table(state, nodes) {
  const rows = [...nodes].sort((x, y) => Math.abs(y.b - y.a) - Math.abs(x.b - x.a));
  const cells = (n) => [
    n.title,
    format.percent(100 * n.a, 200),
    format.percent(100 * n.b, 200),
    `${signOf(n.b - n.a)} ${points(n.b - n.a)}`,
  ];
  const columns = [["Function"], ["A", 1], ["B", 1], ["Points", 1]];
  return pictureTable(state, "arcs", `${rows.length} functions`, () =>
    plain("Functions by difference", columns, rows.map(cells)),
  );
}

export async function show(main, bars, state, signal) {
  const [a, b] = await Promise.all([ask(state, "a", signal), ask(state, "b", signal)]);
  const [nodes, edges] = [new Map(), new Map()];
  gather(a, nodes, edges, "a");
  gather(b, nodes, edges, "b");
  const bar = el("div", { class: "compare bar" }, bars);
  if (nodes.size === 0) {
    replace(main, bar, el("p", { class: "empty" }, "No function has counts on either side."));
    return;
  }
  const shown = { nodes: [...nodes.values()], edges: [...edges.values()], groups: [] };
  for (const e of shown.edges)
    e.text = kindOf(e.b - e.a) === "same" ? "=" : `${signOf(e.b - e.a)} ${points(e.b - e.a)}`;
  const box = el("div", {
    class: "picture",
    tabIndex: 0,
    role: "region",
    "aria-label": "Differences of the call graph",
  });
  const what = `The ${NODES} functions of each side with the most time.`;
  replace(main, bar, legend(what), box, table(state, shown.nodes));
  const size = { w: box.clientWidth || innerWidth, h: HIGH * innerHeight };
  const places = await layout(shown, size);
  const arrow = { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9 };
  const view = svg(
    "svg",
    {
      class: "graph differences",
      viewBox: `0 0 ${places.width} ${places.height}`,
      style: `width:${Math.ceil(places.width)}px;height:${Math.ceil(places.height)}px`,
      role: "group",
      "aria-label": "Differences of the call graph. A table with the same numbers follows.",
    },
    svg(
      "defs",
      {},
      svg("marker", { ...arrow, markerUnits: "userSpaceOnUse", orient: "auto" }, svg("path", { d: "M0,0L8,4L0,8z" })),
    ),
    shown.edges.map((e, i) => drawEdge(e, places.edges[i])),
    shown.nodes.map((n) => drawNode(n, places.nodes.get(n.id), state)),
  );
  view.classList.toggle("bare", !places.labelled);
  replace(box, view);
  const window = { w: box.clientWidth, h: box.clientHeight };
  const middle = busiest(shown.nodes, places, window, (n) => Math.abs(n.b - n.a));
  box.scrollTo(middle.x - window.w / 2, middle.y - window.h / 2);
}
