// The call graph: the functions with the most time, or those around one. Edge width = time, label = calls.
import * as api from "./api.js";
import { timeChoice } from "./choices.js";
import { el, replace, say } from "./dom.js";
import * as format from "./format.js";
import { fold, near } from "./graph_fold.js";
import { drawGraph, sizeOf } from "./graph_draw.js";
import { busiest, layout, trunk } from "./graph_layout.js";
import { sampled } from "./origin.js";
import { Camera, fits, heightFor } from "./picture.js";
import { another, focusOf, functionAt, go, note, question, to } from "./state.js";
import { filterField, pictureTable, plain } from "./table.js";
import { matcher, NARROW } from "./view_report.js";

const USUAL = 40; // functions of a picture
const MOST = 200;
const AROUND = 1000; // functions with the most time, of which those near one are chosen
const HIGH = 0.72; // of the window: the height of the picture
const DEPTHS = ["1", "2", "3"];
const [SLIM, FEWEST] = [12, 4]; // functions of a picture where there is little space

/** How amounts read, and what stands before calls that were sampled. */
const lookOf = (graph) => ({
  amount: format.amounts(graph.dimension, graph),
  percent: (value) => format.share(value, graph.ticks),
  measured: graph.time === "measured",
  mark: sampled({ provenance: graph }) ? "~" : "",
});

/** A function in the address: its address, and its build if that is another one. */
const nameOf = (node, state) => focusOf(state, node.detail__address, node.detail__build_id);

function table(graph, state) {
  const look = lookOf(graph);
  const name = new Map(graph.nodes.map((n) => [n.id, n.title]));
  const edges = [...graph.edges].sort((a, b) => b.total_seconds - a.total_seconds || b.calls - a.calls);
  const range = (e) => (e.detail__low === undefined ? "" : look.amount.between(e.detail__low, e.detail__high));
  const line = (e) => [
    name.get(e.source),
    name.get(e.target),
    look.mark + format.count(e.calls),
    e.detail__inside_cycle ? "inside a cycle" : look.amount(e.total_seconds),
    ...(look.measured ? [range(e)] : []),
  ];
  const columns = [["Caller"], ["Callee"], [`${look.mark}Calls`, 1], ["Time", 1]];
  if (look.measured) columns.push(["95 %", 1]);
  return pictureTable(state, "arcs", `${edges.length} arcs`, () => plain("Arcs by time", columns, edges.map(line)));
}

/** What is drawn: the part around the function that the address names, or all that was fetched. */
function chosen(graph, state) {
  const all = fold(graph, new Set(state.zoom.split(",").filter(Boolean)));
  if (!state.focus) return { ...all, left: graph.not_shown };
  const node = graph.nodes.find((n) => nameOf(n, state) === state.focus);
  const start =
    all.nodes.find((n) => n.id === node?.id) ?? all.nodes.find((n) => n.cycle === String(node?.detail__cycle));
  return start ? { ...near(all, start.id, Number(state.depth) || 1, limitOf(state)), start } : null;
}

const limitOf = (state) => Math.min(MOST, Number(state.nodes) || USUAL);

/** Where the picture begins when it is too large for the window: at the function asked for, else where a root and most
 *  of the time are. */
function anchor(shown, places, size) {
  const y = (n) => places.nodes.get(n.id).y;
  const x = (n) => places.nodes.get(n.id).x;
  const root = shown.nodes.reduce((a, b) => {
    const before = x(b) + y(b) < x(a) + y(a) - 1;
    return b.total_seconds > a.total_seconds || (b.total_seconds === a.total_seconds && before) ? b : a;
  });
  const time = (n) => n.total_seconds;
  if (shown.start && innerWidth < NARROW) return busiest(shown.nodes, places, size, time, shown.start);
  if (shown.start) return places.nodes.get(shown.start.id);
  const { passed, end } = trunk(shown, root, time);
  return busiest(shown.nodes, places, size, (n) => (passed.has(n) ? 0 : n.total_seconds), end);
}

/** What is shown, how much is not, and ways to see more or less. */
function sentence(shown, state) {
  const nodes = limitOf(state);
  const link = (changes, text) => el("a", to(state, { at: "", ...changes }), text);
  const next = shown.nodes.length < nodes && shown.left < nodes ? nodes : Math.min(MOST, nodes * 2);
  const more = shown.left && nodes < MOST ? link({ nodes: String(next) }, "more") : null;
  const fewer =
    nodes > 10 && shown.nodes.length >= nodes ? link({ nodes: String(Math.ceil(nodes / 2)) }, "fewer") : null;
  const left = shown.left ? `; ${format.several(shown.left, "other is", "others are")} not shown` : "";
  const ways = [more, fewer].filter(Boolean).flatMap((way, i) => [i ? " or " : ". Show ", way]);
  const [first] = shown.nodes;
  if (!shown.start && shown.nodes.length === 1 && first.whole?.members_shown) {
    const all = `All shown functions call each other in ${first.title}. `;
    return el("p", {}, all, link({ zoom: first.cycle }, "Open it"), ".");
  }
  const what = shown.start
    ? `${format.called(shown.start.title)} and what is near`
    : shown.nodes.length === 1
      ? "The box with the most time"
      : `The ${shown.nodes.length} boxes with the most time`;
  return el("p", {}, what, left, ways, ".");
}

/** How far around the function. */
function depths(state) {
  const at = DEPTHS.includes(state.depth) ? state.depth : "1";
  const option = (d) => el("option", { value: d, selected: d === at }, d === "1" ? "1 call" : `${d} calls`);
  const select = el("select", { id: "depth", onchange: () => go({ depth: select.value, at: "" }) }, DEPTHS.map(option));
  const all = el("a", to(state, { focus: "", depth: "", at: "" }), "Whole graph");
  const name = el("label", { for: "depth", class: innerWidth < NARROW ? "unseen" : null }, "within");
  return el("span", { class: "bar" }, name, select, all);
}

/** Without the function that has the least time: the one asked for stays. */
function withoutLeast(shown) {
  const others = shown.nodes.filter((n) => n !== shown.start);
  const least = others.reduce((a, b) => (b.total_seconds <= a.total_seconds ? b : a));
  const nodes = shown.nodes.filter((n) => n !== least);
  const edges = shown.edges.filter((e) => e.source !== least.id && e.target !== least.id);
  return { ...shown, nodes, edges, left: (shown.left || 0) + (least.whole?.members_shown || 1) };
}

/** Where there is little space: the functions with the most time of which the picture can be read as a whole, unless
 *  the address says how many. Sizes and texts of what is shown are set. */
async function fitting(graph, all, state, size) {
  const look = lookOf(graph);
  for (const n of all.nodes) Object.assign(n, sizeOf(n, look));
  for (const e of all.edges)
    e.text = e.calls > 0 || !look.measured ? `${look.mark}${format.short(e.calls)} ×` : look.amount(e.time);
  const fixed = innerWidth >= NARROW || state.nodes || state.at || all.groups.length;
  let shown = all;
  while (!fixed && shown.nodes.length > SLIM) shown = withoutLeast(shown);
  let places = await layout(shown, size);
  while (!fixed && shown.nodes.length > FEWEST && !fits(places, size)) {
    shown = withoutLeast(shown);
    places = await layout(shown, size);
  }
  return { shown, places };
}

async function picture(graph, shown, places, size, state, box) {
  const look = lookOf(graph);
  const share = (n) => (n.detail__percent > 0 ? (100 * n.total_seconds) / n.detail__percent : 0);
  const total = format.largest(graph.nodes.map(share), 0);
  size.h = heightFor(places, size);
  const open = new Set(state.zoom.split(",").filter(Boolean));
  const focused = (n) => {
    const node = n.whole ? graph.nodes.find((m) => String(m.detail__cycle) === n.cycle) : n;
    if (node) go({ focus: nameOf(node, state), at: "", nodes: "" });
  };
  const drawn = drawGraph(shown, places, total, look, {
    open: (cycle) => go({ zoom: [...open, cycle].join(","), at: "" }),
    close: (cycle) => go({ zoom: [...open].filter((c) => c !== cycle).join(","), at: "" }),
    follow: (n) => go({ ...another("report"), ...functionAt(state, n.detail__address, n.detail__build_id) }),
    focus: focused,
    seen: (n) => camera.reveal({ ...places.nodes.get(n.id), width: n.w, height: n.h }),
  });
  const camera = new Camera(
    drawn.view,
    places,
    size,
    state.at,
    (at) => note(state, { at }),
    anchor(shown, places, size),
  );
  drawn.view.style.height = `${size.h}px`;
  replace(box, drawn.view);
  return { ...drawn, camera, places };
}

/** The field that marks boxes; Enter goes to the next one. */
function search(state, now) {
  let hits = [];
  let at = 0;
  const apply = (text) => {
    hits = now.drawn.find(matcher(text));
    at = 0;
    if (text) say(`${format.several(hits.length, "box matches", "boxes match")}; Enter goes to the next one`);
  };
  const field = filterField(() => state, "Find functions", "Find (regex)", apply);
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !hits.length) return;
    const hit = hits[at++ % hits.length];
    now.drawn.camera.center(now.drawn.places.nodes.get(hit.id));
    now.drawn.mark(hit.id);
  });
  return { field, apply };
}

export async function draw(main, state, signal) {
  const limit = state.focus ? AROUND : limitOf(state);
  const url = api.path(state.build, "/report", { ...question(state), format: "nodegraph", limit, names: "short" });
  const graph = await api.json(url, signal);
  const all = graph.nodes.length ? chosen(graph, state) : null;
  if (!all) {
    const most = `This function has no counts in this time range, or is not among the ${AROUND} with the most time. `;
    const whole = [most, el("a", to(state, { focus: "", depth: "", at: "" }), "Whole graph")];
    const none = graph.nodes.length ? whole : "No function has counts in this time range.";
    replace(main, el("div", { class: "bar" }, el("h2", {}, "Call graph")), el("p", { class: "empty" }, none));
    return;
  }
  const box = el("div", { class: "picture" });
  const size = { w: main.clientWidth || innerWidth, h: HIGH * innerHeight };
  const { shown, places } = await fitting(graph, all, state, size);
  const now = {};
  const { field, apply } = search(state, now);
  const button = (label, about, action) =>
    el("button", { type: "button", onclick: action, title: about, "aria-label": about }, label);
  const tools = el(
    "span",
    { class: "bar tools", role: "toolbar", "aria-label": "Picture" },
    button("+", "Zoom in", () => now.drawn.camera.zoom(0.8)),
    button("−", "Zoom out", () => now.drawn.camera.zoom(1.25)),
    button("Reset zoom", "Reset zoom", () => now.drawn.camera.reset()),
    button("Show all", "Show the whole picture", () => now.drawn.camera.fit()),
    state.zoom ? button("Close cycles", "Close cycles", () => go({ zoom: "", at: "" })) : null,
  );
  const drawnTable = table(graph, state);
  const near = state.focus ? depths(state) : null;
  const slim = innerWidth < NARROW;
  const bar = [
    el("h2", { class: "unseen" }, "Call graph"),
    field,
    near,
    timeChoice(graph, { at: "" }),
    slim ? null : tools,
    sentence(shown, state),
  ];
  const hint = `${graph.time === "measured" ? MEASURED : DIVIDED} ${WAYS}`;
  // What can be clicked does not touch the picture: boxes that it cuts reach below it.
  const below = [el("p", { class: "hint" }, hint), slim ? tools : null, drawnTable];
  replace(main, el("div", { class: "bar" }, bar), box, below);
  size.w = box.clientWidth || size.w;
  now.drawn = await picture(graph, shown, places, size, state, box);
  if (state.q) apply(state.q);
}

const DIVIDED =
  "The time of a function or cycle is divided among its callers by their numbers of calls (×), as in gprof.";
const MEASURED =
  "Times are measured: each stack counts once for a function, and for the caller that it shows. At the lines: the " +
  "number of calls (×), or the time where calls are not counted.";
const WAYS = "A box opens its function in the table; its circle, or the key f, shows only what is near.";
