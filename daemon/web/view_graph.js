// The call graph: the functions with the most time, or those around one. Edge width = time, label = calls.
import * as api from "./api.js";
import { leaving, leftOut, otherViews, removals, timeChoice } from "./choices.js";
import { breath, button, choice, copy, el, replace } from "./dom.js";
import * as format from "./format.js";
import { fold, hottest, near, partOf, without } from "./graph_fold.js";
import { drawGraph } from "./graph_draw.js";
import { counted, describe, lookOf, selfOf } from "./graph_words.js";
import { layout } from "./graph_layout.js";
import { popup } from "./menu.js";
import { Camera, fits, heightFor, saving } from "./picture.js";
import { another, focusOf, functionAt, go, note, question, to } from "./state.js";
import { finder, NARROW, pictureTable, plain } from "./table.js";

const USUAL = 40; // functions of a picture
const MOST = 200;
const AROUND = 1000; // functions with the most time, of which those near one are chosen
const [HIGH, LOW] = [0.66, 0.46]; // of the window: the most and the least height of the picture
const [BARS, SLIM_BARS] = [150, 250]; // pixels of what stands above and below it, also of what is drawn later
const FRAME = 2; // pixels of its frame, left and right
const DEPTHS = ["1", "2", "3"];
const SLIM = 12; // functions of a picture where there is little space
const FEWEST = 4; // functions of a picture that is cut rather than made smaller
const PEEK = 3; // callers and callees that are named
const LEFT_OUT = [
  ["hide", "Hide it", "Hidden:"],
  ["ignore", "Hide it and what only it reaches", "Without what only this reaches:"],
];

/** A function in the address: its address, and its build if that is another one. */
const nameOf = (node, state) => focusOf(state, node.address, node.build_id);

function table(graph, state) {
  const look = lookOf(graph);
  const name = new Map(graph.nodes.map((n) => [n.id, n.title]));
  const edges = [...graph.edges].sort((a, b) => b.total_seconds - a.total_seconds || b.calls - a.calls);
  const range = (e) => (e.low === undefined ? "" : look.amount.between(e.low, e.high));
  const line = (e) => [
    name.get(e.source),
    name.get(e.target),
    look.mark + format.count(e.calls),
    e.inside_cycle ? "inside a cycle" : look.amount(e.total_seconds),
    ...(look.measured ? [range(e)] : []),
  ];
  const columns = [["Caller"], ["Callee"], [`${look.mark}Calls`, 1], ["Time", 1]];
  if (look.measured) columns.push(["95 % interval", 1]);
  return pictureTable(state, "arcs", `${edges.length} arcs`, () => plain("Arcs by time", columns, edges.map(line)));
}

/** What the address calls a box. */
const keyOf = (n, state) => (n.address ? nameOf(n, state) : n.id);

/** What is drawn: the part around the function that the address names, or all that was fetched. */
function chosen(graph, state) {
  const whole = fold(graph, new Set(state.zoom.split(",").filter(Boolean)));
  const [hide, ignore] = LEFT_OUT.map(([name]) => leftOut(state, name));
  const told = (keys) => (n) => keys.includes(keyOf(n, state));
  const all = hide.length || ignore.length ? without(whole, told(hide), told(ignore)) : whole;
  if (!state.focus) return { ...all, left: graph.not_shown };
  const node = graph.nodes.find((n) => nameOf(n, state) === state.focus);
  const start = all.nodes.find((n) => n.id === node?.id) ?? all.nodes.find((n) => n.cycle === String(node?.cycle));
  return start ? { ...near(all, start.id, Number(state.depth) || 1, limitOf(state)), start } : null;
}

const limitOf = (state) => Math.min(MOST, Number(state.nodes) || USUAL);

/** Where the picture begins when it is too large for the window: at the function asked for, else at the hottest one. */
function anchor({ nodes, start }, places) {
  const hottest = start ?? nodes.reduce((a, b) => (selfOf(b) > selfOf(a) ? b : a));
  return places.nodes.get(hottest.id);
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
    return el("p", all, link({ zoom: first.cycle }, "Open it"), ".");
  }
  const what = shown.start
    ? `${format.called(shown.start.title)} and what is near`
    : state.nodes || !shown.left
      ? `${format.several(shown.nodes.length, "box", "boxes")}`
      : "The hottest functions and the ways to them";
  return el("p", what, left, ways, ".");
}

/** How far around the function. */
function depths(state) {
  const at = DEPTHS.includes(state.depth) ? state.depth : "1";
  const texts = DEPTHS.map((d) => [d, d === "1" ? "1 call" : `${d} calls`]);
  const select = choice({ id: "depth" }, texts, at, (depth) => go({ depth, at: "" }));
  const all = el("a", to(state, { focus: "", depth: "", at: "" }), "Whole graph");
  const name = el("label", { for: "depth", class: innerWidth < NARROW ? "unseen" : null }, "within");
  return el("span.bar", name, select, all);
}

/** The part that those nodes are, and how many functions are not in it. */
function part(all, nodes) {
  const out = all.nodes.filter((n) => !nodes.includes(n));
  const members = out.reduce((sum, n) => sum + (n.whole?.members_shown || 1), 0);
  return { ...all, ...partOf(all, nodes), left: (all.left || 0) + members };
}

/** As many of the hottest functions, with the ways to them, as can be read in one picture, unless the address says how
 *  many. */
async function fitting(all, state, size) {
  const fixed = state.nodes || state.at || all.groups.length;
  const order = fixed ? all.nodes : hottest(all, selfOf);
  const tried = async (count) => {
    const shown = count < all.nodes.length ? part(all, order.slice(0, count)) : all;
    const places = await layout(shown, size);
    return { shown, places, fit: fits(places, size) };
  };
  let [least, most] = [Math.min(FEWEST, order.length), order.length];
  if (!fixed && innerWidth < NARROW) most = Math.min(most, SLIM);
  const largest = await tried(most);
  if (fixed || largest.fit) return largest;
  let best;
  while (most - least > 1) {
    await breath(); // one layout is a task
    const middle = (least + most) >> 1;
    const next = await tried(middle);
    if (next.fit) [least, best] = [middle, next];
    else most = middle;
  }
  return best ?? tried(least);
}

/** A box's menu. */
function menu(n, state, focus, event) {
  event.preventDefault();
  const own = n.address ? otherViews(state, n.address, n.build_id) : [];
  const out = leaving(state, LEFT_OUT, keyOf(n, state));
  const name = n.name ?? n.title;
  popup(n.title, event, [["Copy name", () => copy(name, "Name")], ["Only what is near", focus], ...out, ...own]);
}

/** What was left out. */
const left = (graph, state) => {
  const names = new Map(graph.nodes.map((n) => [keyOf(n, state), n.title]));
  return removals(state, LEFT_OUT, names, "The numbers of the other boxes stay what they are.");
};

/** A box with its callers and callees, in words. */
function peek(shown, look, id) {
  const byId = new Map(shown.nodes.map((n) => [n.id, n]));
  const n = byId.get(id);
  const ends = (from, to, word) => {
    const all = shown.edges.filter((e) => e[from] === id && e[to] !== id).sort((a, b) => b.time - a.time);
    const name = (e) => `${format.called(byId.get(e[to]).title)} (${look.amount(e.time)}${calls(e)})`;
    const rest = all.length > PEEK ? ` and ${format.several(all.length - PEEK, "other", "others")}` : "";
    return all.length ? ` ${word} ${all.slice(0, PEEK).map(name).join(", ")}${rest}.` : "";
  };
  const calls = (e) => (e.calls > 0 ? `, ${look.mark}${format.short(e.calls)} ×` : "");
  const own = `${format.called(n.title)}: ${look.amount(n.total_seconds)}, self ${look.amount(selfOf(n))}.`;
  return own + ends("target", "source", "Called by") + ends("source", "target", "Calls");
}

/** Draws it. focus(node) shows what is near. */
function picture(graph, shown, places, size, state, { box, detail }) {
  const look = lookOf(graph);
  size.h = heightFor(places, size);
  const open = new Set(state.zoom.split(",").filter(Boolean));
  for (const n of shown.nodes) {
    if (n.whole?.members_shown) n.act = () => go({ zoom: [...open, n.cycle].join(","), at: "" });
    else if (n.address) n.act = () => go({ ...another("report"), ...functionAt(state, n.address, n.build_id) });
  }
  const focus = (n) => {
    const node = n.whole ? graph.nodes.find((m) => String(m.cycle) === n.cycle) : n;
    if (node) go({ focus: nameOf(node, state), at: "", nodes: "" });
  };
  const drawn = drawGraph(shown, places, "Call graph. A table with the same arcs follows.", {
    close: (cycle) => go({ zoom: [...open].filter((c) => c !== cycle).join(","), at: "" }),
    focus,
    menu: (n, event) => n.rest || menu(n, state, () => focus(n), event),
    peek: (id) => replace(detail, peek(shown, look, id)),
    seen: (n) => camera.reveal({ ...places.nodes.get(n.id), width: n.w, height: n.h }),
  });
  const moved = (at) => note(state, { at });
  const camera = new Camera(drawn.view, places, size, state.at, moved, anchor(shown, places));
  drawn.view.style.height = `${size.h}px`;
  replace(box, drawn.view);
  return { ...drawn, camera };
}

export async function draw(main, state, signal) {
  const limit = state.focus ? AROUND : limitOf(state);
  const url = api.path(state.build, "/report", { ...question(state), format: "graph", limit, names: "short" });
  const graph = await api.json(url, signal);
  const all = graph.nodes.length ? chosen(graph, state) : null;
  if (!all) {
    const most = `This function has no counts in this time range, or is not among the ${AROUND} with the most time. `;
    const whole = [most, el("a", to(state, { focus: "", depth: "", at: "" }), "Whole graph")];
    const none = graph.nodes.length ? whole : "No function has counts in this time range.";
    replace(main, el("div.bar", el("h2", "Call graph")), el("p.empty", none));
    return;
  }
  if (!all.nodes.length) {
    replace(main, left(graph, state), el("p.empty", "No box is left. Remove one of the choices above."));
    return;
  }
  const box = el("div.picture");
  const detail = el("p.hint.detail", { "aria-live": "polite" }, WAYS);
  const slim = innerWidth < NARROW;
  const free = innerHeight - main.getBoundingClientRect().top - scrollY - (slim ? SLIM_BARS : BARS);
  const { paddingLeft, paddingRight } = getComputedStyle(main);
  const size = {
    w: main.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight) - FRAME,
    h: Math.min(HIGH * innerHeight, Math.max(LOW * innerHeight, free)),
  };
  describe(all, lookOf(graph));
  const { shown, places } = await fitting(all, state, size);
  signal.throwIfAborted(); // another drawing has begun
  const now = {};
  const { field, apply } = finder(state, (wanted) => now.drawn.find(wanted), (n) => {
    now.drawn.camera.reveal({ ...places.nodes.get(n.id), width: n.w, height: n.h });
    now.drawn.mark(n.id);
  });
  const tools = el(
    "span.bar.tools",
    { role: "toolbar", "aria-label": "Picture" },
    button("+", () => now.drawn.camera.zoom(0.8), { "aria-label": "Zoom in" }),
    button("−", () => now.drawn.camera.zoom(1.25), { "aria-label": "Zoom out" }),
    button("Reset zoom", () => now.drawn.camera.reset()),
    saving("profd-call-graph", () => [now.drawn.view, `0 0 ${Math.ceil(places.width)} ${Math.ceil(places.height)}`]),
    state.zoom ? button("Close cycles", () => go({ zoom: "", at: "" })) : null,
  );
  const drawnTable = table(graph, state);
  const near = state.focus ? depths(state) : null;
  const bar = [
    el("h2.unseen", "Call graph"),
    field,
    near,
    timeChoice(graph, { at: "" }),
    slim ? null : tools,
    sentence(shown, state),
  ];
  const times = counted(all.edges, lookOf(graph)) ? "numbers of calls (×)" : "times";
  const own = `${OWN}${slim ? "" : " and size of letters"}.`;
  const hint = `${own} ${graph.time === "measured" ? MEASURED : DIVIDED} On the lines: ${times}.`;
  // What can be clicked does not touch the picture: boxes that it cuts reach below it.
  const below = [detail, el("p.hint", hint), slim ? tools : null, drawnTable];
  replace(main, el("div.bar", bar), left(graph, state), box, below);
  now.drawn = picture(graph, shown, places, size, state, { box, detail });
  if (state.q) apply(state.q);
}

const OWN = "The time of a function's own code is shown by colour";
const DIVIDED = "Its time with callees is divided among its callers by their numbers of calls, as in gprof.";
const MEASURED = "Times are measured: each stack counts once for a function, and for the caller that it shows.";
const WAYS = matchMedia("(hover: none)").matches
  ? "A box opens its function, its circle shows only what is near."
  : "A box opens its function; its circle, or f, shows only what is near; a right click opens a menu.";
