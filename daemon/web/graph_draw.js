// Draws the call graph: boxes, edges and groups at the places that dagre gave them.
import { related } from "./graph_fold.js";
import { add, el, svg } from "./dom.js";
import * as format from "./format.js";
import { NARROW } from "./table.js";

const [TITLE, SHORT] = [28, 13]; // characters of a name; where there is little space
const [SPOT, SEEN] = [12, 8]; // radius of the circle that focuses: a target of 24 pixels, and what is seen of it

/** A curve through the middles between the points. */
export function smooth(points) {
  const [first, ...rest] = points;
  const last = rest.pop();
  let d = `M${first.x},${first.y}`;
  rest.forEach((p, i) => {
    const next = rest[i + 1] ?? last;
    const end = rest[i + 1] ? { x: (p.x + next.x) / 2, y: (p.y + next.y) / 2 } : last;
    d += `Q${p.x},${p.y} ${end.x},${end.y}`;
  });
  return rest.length ? d : `${d}L${last.x},${last.y}`;
}

/** The interval of a measured time. */
const rangeOf = ({ low, high, stacks }, look) =>
  look.measured && low !== undefined
    ? `, 95 %: ${look.amount.between(low, high)}, ${format.several(stacks, "stack", "stacks")}`
    : "";

const LETTER = 6.6; // pixels of a label's letter
const LABEL = 15; // and its height

/** The text at an arc, on a ground that hides the lines below it; null without a text. */
export function drawLabel(e, place, title) {
  if (!e.text) return null;
  const middle = place.points[Math.floor(place.points.length / 2)];
  const [x, y] = [place.x ?? middle.x, place.y ?? middle.y];
  const width = LETTER * e.text.length + 4;
  return svg(
    "g.tag",
    svg("rect.back", { x: x - width / 2, y: y - LABEL / 2, width, height: LABEL, rx: 3 }),
    svg("text", { x, y: y + 4, "text-anchor": "middle" }, e.text),
    svg("title", title),
  );
}

/** The line of an arc and its label, which stands above all lines. */
function drawEdge(e, place, total, look) {
  const share = total > 0 ? e.time / total : 0;
  const time = e.inside ? "inside a cycle" : look.amount(e.time) + rangeOf(e, look);
  const calls =
    e.calls > 0 || !look.measured ? look.mark + format.several(e.calls, "call", "calls") : "seen in stacks only";
  const title = e.about ?? `${calls}, ${time}`;
  const path = { "stroke-width": (1 + 7 * Math.sqrt(share)).toFixed(2), "marker-end": "url(#arrow)" };
  const kind = `edge${e.inside ? " inside" : ""}${e.breaks ? " breaks" : ""}`;
  const line = svg("g", { class: kind }, svg("path", { d: smooth(place.points), ...path }), svg("title", title));
  return [line, drawLabel(e, place, title)];
}

/** What a cycle adds up. */
function cycleText(c, look) {
  const outside = format.many(c, "calls_outside", "call", "calls");
  const among = format.exact(c, "calls_inside");
  const calls = `${look.mark}${outside} from outside, ${look.mark}${among} among its members`;
  return `self ${look.amount(c.self_seconds)}, ${calls}`;
}

const slim = () => innerWidth < NARROW;
const titleOf = (n) => format.clip(n.title, slim() ? SHORT : TITLE);
const [SMALL, LARGE] = [13, 22]; // pixels of a name's letters: by the time of its own

/** The time of a box's own code. */
export const selfOf = (n) => n.whole?.self_seconds ?? (n.rest ? 0 : n.self_seconds);

/** How much of all time that is, as colour and size show it: its root, so that small parts are seen. */
const heatOf = (n, total) => Math.sqrt(total > 0 ? Math.min(1, selfOf(n) / total) : 0);

/** What a box says below its name, and what its title says beyond that. */
function textsOf(n, look) {
  if (n.texts) return n.texts;
  if (n.rest) {
    const calls = format.several(n.rest.calls, "call", "calls");
    return { times: look.amount(n.total_seconds), more: `, ${look.mark}${calls}` };
  }
  if (!n.whole) {
    const total = look.amount(n.total_seconds);
    const self = `self ${look.amount(n.self_seconds)}`;
    const again = n.self_calls ? `, ${format.count(n.self_calls)} recursive` : "";
    const range = rangeOf({ low: n.low, high: n.high, stacks: n.stacks }, look);
    const times = slim() ? total : `${total} · ${self}`;
    const own = slim() ? `, ${self}` : "";
    return { times, more: `${own}${range}, ${look.mark}${format.several(n.calls, "call", "calls")}${again}` };
  }
  const opens = n.whole.members_shown ? ", opens in place" : "";
  const times = `${format.several(n.whole.members, "function", "functions")}, ${look.amount(n.whole.total_seconds)}`;
  return { times, more: `, ${cycleText(n.whole, look)}${opens}` };
}

const paper = el("canvas").getContext("2d");
function widthOf(text, font) {
  paper.font = `${font} system-ui, sans-serif`;
  return paper.measureText(text).width;
}

/** How large a box is, and the letters of its name: its texts fit. total: the time of all. */
export function sizeOf(n, look, total) {
  const letters = Math.round(SMALL + (slim() ? 0 : LARGE - SMALL) * heatOf(n, total));
  const title = widthOf(titleOf(n), `600 ${letters}px`) + 24;
  const times = widthOf(textsOf(n, look).times, "12px") + 16;
  return { w: Math.round(Math.max(80, title, times)), h: 27 + letters, letters };
}

/** on: {open(cycle), follow(node), focus(node) unless no box has what is near it, mark(id or null), seen(node): it has the focus of the keyboard,
 *  menu(node, event)}. */
function drawNode(n, place, total, look, on) {
  const share = total > 0 ? Math.min(1, n.total_seconds / total) : 0;
  const cycle = n.whole !== undefined;
  const { times, more } = textsOf(n, look);
  const act = () => (n.rest || n.whole?.members_shown === 0 ? undefined : cycle ? on.open(n.cycle) : on.follow(n));
  const keys = (event) => {
    const does = { Enter: act, " ": act, f: () => n.rest || on.focus?.(n) }[event.key];
    if (!does || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    does();
  };
  const spot = svg(
    "g.spot",
    { "aria-hidden": "true", transform: `translate(${n.w},0)`, onclick: () => on.focus(n) },
    svg("circle.target", { r: SPOT }),
    svg("circle", { r: SEEN }),
    svg("circle.dot", { r: 3 }),
    svg("title", "show only what is near"),
  );
  const middle = { x: n.w / 2, "text-anchor": "middle" };
  const heat = 100 * heatOf(n, total);
  const box = svg(
    "g",
    { class: cycle ? "node cycle" : "node", tabindex: 0, role: "link", onclick: act, onkeydown: keys },
    svg("rect", { width: n.w, height: n.h, rx: cycle ? 14 : 4, style: `--share:${heat.toFixed(1)}%` }),
    svg("text.title", { ...middle, y: 4 + n.letters, style: `font-size:${n.letters}px` }, titleOf(n)),
    svg("text", { ...middle, y: n.h - 9 }, times),
    svg("title", `${n.name ?? n.title} ${times}, ${look.percent(100 * share)}${more}`),
  );
  box.addEventListener("focus", () => {
    on.mark(n.id);
    if (box.matches(":focus-visible")) on.seen(n);
  });
  box.addEventListener("blur", () => on.mark(null));
  const wrap = { class: "item", transform: `translate(${place.x - n.w / 2},${place.y - n.h / 2})` };
  const hover = { onpointerenter: () => on.mark(n.id), onpointerleave: () => on.mark(null) };
  return svg("g", { ...wrap, ...hover, oncontextmenu: (event) => on.menu(n, event) }, box, n.rest || !on.focus ? null : spot);
}

/** Enter and the space bar do what a click does. */
export const pressed = (act) => (event) => {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  event.stopPropagation();
  act();
};

/** The area of an open cycle, and the label that closes it. */
function drawGroup(g, place, look, close) {
  const left = place.x - place.width / 2;
  const top = place.y - place.height / 2;
  const hidden = g.whole.members - g.members.length;
  const others = hidden > 0 ? ` ${format.several(hidden, "member is", "members are")} not shown.` : "";
  const about = `${g.title}: ${look.amount(g.whole.total_seconds)}, ${cycleText(g.whole, look)}.${others}`;
  const text = `× ${g.title}, ${look.amount(g.whole.total_seconds)}`;
  const area = svg("rect.group", { x: left, y: top, width: place.width, height: place.height, rx: 14 });
  const does = { onclick: close, onkeydown: pressed(close) };
  const label = svg(
    "g.label",
    { role: "button", tabindex: 0, ...does, "aria-label": `Close ${about}` },
    svg("rect", { x: left, y: top - 12, width: 7 * text.length + 12, height: 24, rx: 6 }),
    svg("text", { x: left + 8, y: top + 4 }, text),
    svg("title", about),
  );
  return [area, label];
}

/** The head of all arrows. */
export function arrowHead() {
  const arrow = { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9 };
  const marker = { ...arrow, markerUnits: "userSpaceOnUse", orient: "auto" };
  return svg("defs", svg("marker", marker, svg("path", { d: "M0,0L8,4L0,8z" })));
}

/** What changes what stands out: mark(id or null) and find(wanted). nodes: id → element; edges: edge → elements. */
export function marking(view, shown, nodes, edges, nameOf) {
  const mark = (id) => {
    const near = id === null ? null : related(shown, id);
    view.classList.toggle("hovering", near !== null);
    for (const [key, node] of nodes) {
      node.classList.toggle("near", Boolean(near?.ids.has(key)));
      node.classList.toggle("at", key === id);
    }
    for (const [e, parts] of edges)
      for (const part of parts) part?.classList.toggle("near", Boolean(near?.edges.has(e)));
  };
  const find = (wanted) => {
    const hits = shown.nodes.filter((n) => wanted?.(nameOf(n)));
    const all = new Set(hits.map((n) => n.id));
    view.classList.toggle("searching", Boolean(wanted));
    for (const [key, node] of nodes) node.classList.toggle("hit", all.has(key));
    return hits;
  };
  return { mark, find };
}

/** The picture. on: see drawNode, and close(cycle), peek(id): the box that is pointed at. mark() and find(wanted)
 *  change what stands out. */
export function drawGraph(shown, places, total, look, on) {
  const nodes = new Map();
  const edges = new Map();
  const about = "Call graph. A table with the same arcs follows.";
  const view = svg("svg.graph", { preserveAspectRatio: "xMidYMin meet", role: "group", "aria-label": about });
  const { mark, find } = marking(view, shown, nodes, edges, (n) => n.name ?? n.title);
  const marks = (id) => {
    mark(id);
    if (id !== null) on.peek(id);
  };
  const acts = { ...on, mark: marks };
  for (const n of shown.nodes) nodes.set(n.id, drawNode(n, places.nodes.get(n.id), total, look, acts));
  shown.edges.forEach((e, i) => edges.set(e, drawEdge(e, places.edges[i], total, look)));
  const groups = shown.groups.map((g) => drawGroup(g, places.groups.get(g.id), look, () => on.close(g.cycle)));
  const [lines, labels] = [0, 1].map((k) => [...edges.values()].map((parts) => parts[k]).filter(Boolean));
  add(view, [arrowHead(), groups.map(([area]) => area), lines, labels, [...nodes.values()]]);
  add(view, [groups.map(([, label]) => label)]);
  view.classList.toggle("bare", !places.labelled);
  return { view, find, mark };
}
