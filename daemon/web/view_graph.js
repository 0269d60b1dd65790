// The call graph: layered, the functions with the most time, edge width = time, label = calls. A table says the same.
import * as api from "./api.js";
import { el, replace, svg } from "./dom.js";
import * as format from "./format.js";
import { layout } from "./layout.js";
import { Camera } from "./picture.js";
import { sampled } from "./origin.js";
import { another, go, note, question, to } from "./state.js";
import { pictureTable, plain } from "./table.js";

const clip = (text, n) => (text.length > n ? `${text.slice(0, n - 1)}…` : text);

/** Members of a cycle as one node, unless the cycle is open. Its figures, callers and callees are those of the report, also
 *  where most members, or the callers, are not among the functions shown. */
function fold(graph, open) {
  const folded = graph.cycles.filter((c) => !open.has(String(c.cycle)));
  const idOf = (cycle) => `cycle-${cycle}`;
  const closed = new Set(folded.map((c) => c.cycle));
  const known = new Map([...graph.nodes, ...graph.context].map((n) => [n.id, n]));
  const of = (id) => (closed.has(known.get(id)?.detail__cycle) ? idOf(known.get(id).detail__cycle) : id);
  const nodes = new Map();
  for (const c of folded)
    nodes.set(idOf(c.cycle), {
      id: idOf(c.cycle),
      title: `cycle ${c.cycle}`,
      cycle: String(c.cycle),
      whole: c,
      mainstat: c.mainstat,
    });
  for (const n of graph.nodes) if (of(n.id) === n.id) nodes.set(n.id, n);
  const edges = new Map();
  const add = (source, target, calls, time, inside) => {
    if (source === target) return;
    const key = `${source} ${target}`;
    const sum = edges.get(key) ?? { source, target, mainstat: 0, secondarystat: 0, inside };
    sum.mainstat += calls;
    sum.secondarystat += time;
    edges.set(key, sum);
  };
  // Edges of a folded cycle come from the cycle, the others from the functions.
  for (const e of graph.edges)
    if (of(e.source) === e.source && of(e.target) === e.target)
      add(e.source, e.target, e.mainstat, e.secondarystat, e.detail__inside_cycle);
  for (const c of folded) {
    const id = idOf(c.cycle);
    const drawn = (row) => {
      const other = of(row.id);
      if (!nodes.has(other) && known.has(row.id)) nodes.set(other, known.get(row.id));
      return other;
    };
    const rest = (more, kind) => {
      if (!more.functions) return null;
      const text = format.several(more.functions, `other ${kind}`, `other ${kind}s`);
      nodes.set(`${id}-${kind}s`, { id: `${id}-${kind}s`, title: text, mainstat: more.secondarystat, rest: more });
      return `${id}-${kind}s`;
    };
    for (const row of c.callers) add(drawn(row), id, row.mainstat, row.secondarystat, false);
    // A callee that is a folded cycle has this edge among its callers.
    for (const row of c.callees) if (of(row.id) === row.id) add(id, drawn(row), row.mainstat, row.secondarystat, false);
    const callers = rest(c.more_callers, "caller");
    const callees = rest(c.more_callees, "callee");
    if (callers) add(callers, id, c.more_callers.mainstat, c.more_callers.secondarystat, false);
    if (callees) add(id, callees, c.more_callees.mainstat, c.more_callees.secondarystat, false);
  }
  return { nodes: [...nodes.values()], edges: [...edges.values()] };
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
  const middle =
    points.length % 2
      ? points[(points.length - 1) / 2]
      : {
          x: (points[points.length / 2 - 1].x + points[points.length / 2].x) / 2,
          y: (points[points.length / 2 - 1].y + points[points.length / 2].y) / 2,
        };
  const end = points[points.length - 1];
  const before = points[points.length - 2];
  const up = before.y > end.y;
  const trimmed = [...points.slice(0, -1), { x: end.x, y: end.y + (up ? 1 : -1) * (end.h / 2 + 4) }];
  return svg(
    "g",
    { class: e.inside ? "edge inside" : "edge" },
    svg("path", {
      d: smooth(trimmed),
      "stroke-width": (1 + 7 * Math.sqrt(share)).toFixed(2),
      "marker-end": "url(#arrow)",
    }),
    svg(
      "text",
      { x: middle.x, y: middle.y, "text-anchor": "middle" },
      look.mark + format.short(e.mainstat),
      svg("title", {}, `${look.mark}${format.several(e.mainstat, "call", "calls")}, ${look.amount(e.secondarystat)}`),
    ),
  );
}

/** What a box says below its name, and what its hover says beyond that. */
function textsOf(n, look) {
  if (n.rest)
    return {
      times: look.amount(n.mainstat),
      more: `, ${look.mark}${format.several(n.rest.mainstat, "call", "calls")}`,
    };
  if (!n.whole)
    return {
      times: `${look.amount(n.mainstat)} · self ${look.amount(n.detail__self_seconds)}`,
      more: `, ${look.mark}${format.several(n.secondarystat, "call", "calls")}`,
    };
  const c = n.whole;
  const members = format.several(c.members, "function", "functions");
  return {
    times: `${members}, ${look.amount(c.mainstat)}`,
    more: `, self ${look.amount(c.self)}, ${look.mark}${format.many(c, "calls_outside", "call", "calls")} from outside, ${look.mark}${format.exact(c, "calls_inside")} among its members${c.members_shown ? ", opens in place" : ""}`,
  };
}

function drawNode(n, place, total, look, open, follow) {
  const share = total > 0 ? Math.min(1, n.mainstat / total) : 0;
  const cycle = n.whole !== undefined;
  const title = clip(n.title, 36);
  const { times, more } = textsOf(n, look);
  const label = `${n.detail__name ?? n.title} ${times}, ${format.percent(100 * share)}${more}`;
  const act = () => (n.rest || n.whole?.members_shown === 0 ? undefined : cycle ? open(n.cycle) : follow(n));
  const keys = (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      event.stopPropagation();
      act();
    }
  };
  return svg(
    "g",
    {
      class: cycle ? "node cycle" : "node",
      tabindex: 0,
      role: "link",
      onclick: act,
      onkeydown: keys,
      transform: `translate(${place.x - n.w / 2},${place.y - n.h / 2})`,
    },
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
  for (const n of nodes)
    Object.assign(n, { w: Math.max(170, Math.min(310, 8 * Math.min(36, n.title.length) + 24)), h: 44 });
  const places = layout(nodes, edges);
  const top = nodes.reduce((a, b) =>
    b.mainstat > a.mainstat && places.places.get(b.id).y <= places.places.get(a.id).y ? b : a,
  );
  const view = svg(
    "svg",
    {
      class: "graph",
      preserveAspectRatio: "xMidYMin meet",
      role: "group",
      "aria-label": "Call graph. A table with the same arcs follows.",
    },
    svg(
      "defs",
      {},
      svg(
        "marker",
        {
          id: "arrow",
          viewBox: "0 0 8 8",
          refX: 4,
          refY: 4,
          markerWidth: 8,
          markerHeight: 8,
          markerUnits: "userSpaceOnUse",
          orient: "auto",
        },
        svg("path", { d: "M0,0L8,4L0,8z" }),
      ),
    ),
    edges.map((e) => drawEdge(e, places, total, look)),
    nodes.map((n) =>
      drawNode(
        n,
        places.places.get(n.id),
        total,
        look,
        (cycle) => redraw([...open, cycle].join(",")),
        (node) =>
          go({
            ...another("report"),
            fn: node.detail__address,
            of: node.detail__build_id === state.build ? "" : (node.detail__build_id ?? ""),
          }),
      ),
    ),
  );
  return {
    view,
    camera: new Camera(
      view,
      places.width,
      places.height,
      state.at,
      (at) => note(state, { at }),
      places.places.get(top.id).x,
    ),
    closable: open.size > 0,
  };
}

/** How amounts read, and what stands before calls that were sampled. */
const lookOf = (graph) => ({
  amount: format.amounts(graph.dimension, graph),
  mark: sampled({ provenance: graph }) ? "~" : "",
});

function table(graph, state) {
  const look = lookOf(graph);
  const name = new Map(graph.nodes.map((n) => [n.id, n.title]));
  const edges = [...graph.edges].sort((a, b) => b.secondarystat - a.secondarystat || b.mainstat - a.mainstat);
  return pictureTable(state, "arcs", `${edges.length} arcs`, () =>
    plain(
      "Arcs by time",
      [["Caller"], ["Callee"], [`${look.mark}Calls`, 1], ["Time", 1]],
      edges.map((e) => [
        name.get(e.source),
        name.get(e.target),
        look.mark + format.count(e.mainstat),
        e.detail__inside_cycle ? "inside a cycle" : look.amount(e.secondarystat),
      ]),
    ),
  );
}

export async function draw(main, state, signal) {
  const nodes = Math.min(400, Number(state.nodes) || 40);
  const graph = await api.json(
    api.path(state.build, "/report", { ...question(state), format: "nodegraph", limit: nodes, names: "short" }),
    signal,
  );
  const total = Math.max(
    0,
    ...graph.nodes.map((n) => (n.detail__percent > 0 ? (100 * n.mainstat) / n.detail__percent : 0)),
  );
  const box = el("div", { class: "picture" });
  const show = (zoom) => {
    state.zoom = zoom;
    const { view, camera, closable } = picture(graph, total, state, (next) => go({ zoom: next, at: "" }));
    const button = (label, action) => el("button", { type: "button", onclick: action }, label);
    replace(
      box,
      el(
        "div",
        { class: "tools", role: "toolbar", "aria-label": "Picture" },
        button("+", () => camera.zoom(0.8)),
        button("−", () => camera.zoom(1.25)),
        button("Reset zoom", () => camera.reset()),
        closable ? button("Close cycles", () => go({ zoom: "", at: "" })) : null,
      ),
      view,
    );
  };
  const more = (n, text) => el("a", to(state, { nodes: String(n), at: "" }), text);
  replace(
    main,
    el(
      "div",
      { class: "bar" },
      el("h2", {}, "Call graph"),
      el(
        "p",
        {},
        `The ${graph.nodes.length} functions with the most time`,
        graph.not_shown
          ? [
              `; ${format.count(graph.not_shown)} ${graph.not_shown === 1 ? "other is" : "others are"} not shown. Show `,
              more(nodes * 2, "more"),
              nodes > 10 ? [" or ", more(Math.ceil(nodes / 2), "fewer")] : null,
            ]
          : null,
        ".",
      ),
    ),
    graph.nodes.length ? box : el("p", {}, "No function has counts in this time range."),
    table(graph, state),
    graph.nodes.length
      ? el(
          "p",
          { class: "hint" },
          "The time of a function or cycle is divided among its callers by their numbers of calls, as in gprof.",
        )
      : null,
  );
  if (graph.nodes.length) show(state.zoom);
}
