// Draws a graph of calls: boxes, arcs and groups at the places that dagre gave them. What they say, they bring along.
import { related } from "./graph_fold.js";
import { add, el, svg } from "./dom.js";

const [SPOT, SEEN] = [12, 8]; // radius of the circle that focuses: a target of 24 pixels, and what is seen of it
const [LINE, LABEL] = [16, 15]; // pixels: height of a line below a name, and of a text at an arc

/** A curve through the middles between the points. */
function smooth(points) {
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

const paper = el("canvas").getContext("2d");
function widthOf(text, font) {
  paper.font = `${font} system-ui, sans-serif`;
  return paper.measureText(text).width;
}

/** How large a box is, so that its texts fit: label, with letters of that many pixels, and lines below it. */
export function sizeOf({ label, letters, lines }) {
  const longest = lines.reduce((most, line) => Math.max(most, widthOf(line, "12px") + 16), 80);
  const w = Math.max(longest, widthOf(label, `600 ${letters}px`) + 24);
  return { w: Math.round(w), h: letters + 11 + LINE * lines.length };
}

/** How thick the line of a part of all is. */
export const thickness = (part) => 1 + 7 * Math.sqrt(Math.max(0, part));

/** The line of an arc and its label, which stands above all lines on a ground that hides them; null without a text. */
function drawEdge(e, place) {
  const path = { d: smooth(place.points), "stroke-width": e.thick.toFixed(2), "marker-end": "url(#arrow)" };
  const line = svg("g", { class: `edge ${e.kind ?? ""}` }, svg("path", path), svg("title", e.about));
  if (!e.text) return [line, null];
  const middle = place.points[Math.floor(place.points.length / 2)];
  const [x, y] = [place.x ?? middle.x, place.y ?? middle.y];
  const width = widthOf(e.text, "12px") + 6;
  const label = svg(
    "g.tag",
    svg("rect.back", { x: x - width / 2, y: y - LABEL / 2, width, height: LABEL, rx: 3 }),
    svg("text", { x, y: y + 4, "text-anchor": "middle" }, e.text),
    svg("title", e.about),
  );
  return [line, label];
}

/** Keys do what a click does: Enter and the space bar, and others that are given. */
const pressed =
  (act, others = {}) =>
  (event) => {
    const does = { Enter: act, " ": act, ...others }[event.key];
    if (!does || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    does();
  };

function drawNode(n, place, on, mark) {
  const act = () => n.act?.();
  const near = on.focus && n.near !== false ? () => on.focus(n) : undefined;
  const spot = () =>
    svg(
      "g.spot",
      { "aria-hidden": "true", transform: `translate(${n.w},0)`, onclick: near },
      svg("circle.target", { r: SPOT }),
      svg("circle", { r: SEEN }),
      svg("circle.dot", { r: 3 }),
      svg("title", "show only what is near"),
    );
  const middle = { x: n.w / 2, "text-anchor": "middle" };
  const line = (text, i) => svg("text", { ...middle, y: n.h - 9 - LINE * (n.lines.length - 1 - i) }, text);
  const focused = () => {
    mark(n.id);
    if (box.matches(":focus-visible")) on.seen?.(n);
  };
  const does = { onclick: act, onkeydown: pressed(act, { f: near }), onfocus: focused, onblur: () => mark(null) };
  const box = svg(
    "g",
    { class: `node ${n.kind}`, tabindex: 0, role: "link", "aria-label": n.about, ...does },
    svg("rect", { width: n.w, height: n.h, rx: n.kind === "cycle" ? 14 : 4, style: n.style }),
    svg("text.title", { ...middle, y: 4 + n.letters, style: `font-size:${n.letters}px` }, n.label),
    n.lines.map(line),
    svg("title", n.about),
  );
  const wrap = { class: "item", transform: `translate(${place.x - n.w / 2},${place.y - n.h / 2})` };
  const hover = { onpointerenter: () => mark(n.id), onpointerleave: () => mark(null) };
  return svg("g", { ...wrap, ...hover, oncontextmenu: (event) => on.menu?.(n, event) }, box, near ? spot() : null);
}

/** The area of an open cycle, and the label that closes it. */
function drawGroup(g, place, close) {
  const [left, top] = [place.x - place.width / 2, place.y - place.height / 2];
  const area = svg("rect.group", { x: left, y: top, width: place.width, height: place.height, rx: 14 });
  const does = { onclick: close, onkeydown: pressed(close) };
  const label = svg(
    "g.label",
    { role: "button", tabindex: 0, ...does, "aria-label": `Close ${g.about}` },
    svg("rect", { x: left, y: top - 12, width: widthOf(g.text, "12px") + 16, height: 24, rx: 6 }),
    svg("text", { x: left + 8, y: top + 4 }, g.text),
    svg("title", g.about),
  );
  return [area, label];
}

/** The head of all arrows. */
function arrowHead() {
  const arrow = { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9 };
  const marker = { ...arrow, markerUnits: "userSpaceOnUse", orient: "auto" };
  return svg("defs", svg("marker", marker, svg("path", { d: "M0,0L8,4L0,8z" })));
}

/** The picture. shown: nodes {id, label, letters, lines, w and h of sizeOf(), kind, style, about, act(); near: false
 *  where nothing is near}, edges {source, target, thick, kind, text, about} and groups {id, cycle, text, about}.
 *  on: {close(cycle), focus(node), menu(node, event), peek(id): the box that is pointed at, seen(node): it has the
 *  focus of the keyboard}.
 *  Gives {view, mark(id or null), find(wanted)}: these change what stands out. */
export function drawGraph(shown, places, about, on = {}) {
  const [nodes, edges] = [new Map(), new Map()];
  const view = svg("svg.graph", { preserveAspectRatio: "xMidYMin meet", role: "group", "aria-label": about });
  const mark = (id) => {
    const near = id === null ? null : related(shown, id);
    view.classList.toggle("hovering", near !== null);
    for (const [key, node] of nodes) {
      node.classList.toggle("near", Boolean(near?.ids.has(key)));
      node.classList.toggle("at", key === id);
    }
    for (const [e, parts] of edges)
      for (const part of parts) part?.classList.toggle("near", Boolean(near?.edges.has(e)));
    if (near) on.peek?.(id);
  };
  const find = (wanted) => {
    const hits = shown.nodes.filter((n) => wanted?.(n.name ?? n.title));
    const all = new Set(hits.map((n) => n.id));
    view.classList.toggle("searching", Boolean(wanted));
    for (const [key, node] of nodes) node.classList.toggle("hit", all.has(key));
    return hits;
  };
  for (const n of shown.nodes) nodes.set(n.id, drawNode(n, places.nodes.get(n.id), on, mark));
  shown.edges.forEach((e, i) => edges.set(e, drawEdge(e, places.edges[i])));
  const groups = shown.groups.map((g) => drawGroup(g, places.groups.get(g.id), () => on.close(g.cycle)));
  const [lines, labels] = [0, 1].map((k) => [...edges.values()].map((parts) => parts[k]));
  add(view, [arrowHead(), groups.map(([area]) => area), lines, labels, [...nodes.values()]]);
  add(view, [groups.map(([, label]) => label)]);
  view.classList.toggle("bare", !places.labelled);
  return { view, find, mark };
}

/** A picture that is as large as its places. */
export function drawWhole(shown, places, about, on) {
  const drawn = drawGraph(shown, places, about, on);
  const [w, h] = [Math.ceil(places.width), Math.ceil(places.height)];
  drawn.view.setAttribute("viewBox", `0 0 ${w} ${h}`);
  drawn.view.style.cssText = `width:${w}px;height:${h}px`;
  return drawn;
}
