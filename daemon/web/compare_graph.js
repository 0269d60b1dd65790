// Two call graphs as one: the functions with the most time on either side. A box is coloured where its difference is
// more than chance.
import * as api from "./api.js";
import { CHANCE, kindOf, legend, points, signOf, strength } from "./compare_flame.js";
import { answerOf, judge } from "./compare_judge.js";
import { sideQuestion } from "./compare_sides.js";
import { el, replace, say, svg } from "./dom.js";
import * as format from "./format.js";
import { arrowHead, drawLabel, marking, pressed, smooth } from "./graph_draw.js";
import { totalOf } from "./graph_fold.js";
import { busiest, layout, trunk } from "./graph_layout.js";
import { another, go } from "./state.js";
import { findField, matcher, NARROW, pictureTable, plain } from "./table.js";

const NODES = 40; // functions of each side
const HIGH = 0.72; // of the window: the height of the picture
const WIDE = { size: { w: 200, h: 42 }, gaps: undefined };
const SLIM = { size: { w: 108, h: 76 }, gaps: { nodesep: 6, edgesep: 4, ranksep: 17, marginx: 2, marginy: 2 } };
const TITLE = 22; // characters of a name
const LINE = 13; // of each of the two lines that it has in a slim box

const ask = (state, side, signal) => {
  const build = side === "a" ? state.build : state.against;
  const params = { ...sideQuestion(state, side), format: "graph", limit: NODES, names: "short" };
  return api.json(api.path(build, "/report", params), signal);
};

/** Adds the nodes and edges of a side, as shares of its time. */
function gather(graph, nodes, edges, side, size) {
  const total = totalOf(graph) || 1;
  const names = new Map();
  for (const n of graph.nodes) {
    const id = n.name ?? n.title;
    names.set(n.id, id);
    const node = nodes.get(id) ?? nodes.set(id, { id, title: n.title, a: 0, b: 0, ...size }).get(id);
    node[side] += n.total_seconds / total;
    node[`at_${side}`] = { fn: n.address, of: n.build_id };
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

/** Both graphs as one. verdicts: of judge(). An arc is coloured as its callee is: arcs have no test of their own. */
function merged(a, b, verdicts, form) {
  const [nodes, edges] = [new Map(), new Map()];
  gather(a, nodes, edges, "a", form.size);
  gather(b, nodes, edges, "b", form.size);
  for (const n of nodes.values()) {
    n.verdict = verdicts.of(n.id);
    n.certain = ["more", "less"].includes(n.verdict?.kind);
  }
  for (const e of edges.values()) {
    const d = e.b - e.a;
    const certain = nodes.get(e.target).certain;
    e.kind = certain ? kindOf(d) : "same";
    e.time = Math.max(e.a, e.b);
    e.text = form === SLIM ? "" : e.kind !== "same" ? `${signOf(d)} ${points(d)}` : kindOf(d) === "same" ? "=" : "≈";
  }
  return { nodes: [...nodes.values()], edges: [...edges.values()], groups: [] };
}

function drawEdge(e, place) {
  const about =
    `${e.source} → ${e.target}: ${format.percent(100 * e.a, 200)} of A, ${format.percent(100 * e.b, 200)} of B; ` +
    `calls ${format.count(e.calls_a)} and ${format.count(e.calls_b)}`;
  const line = { d: smooth(place.points), "stroke-width": (1 + 7 * Math.sqrt(e.time)).toFixed(2) };
  const path = svg("path", { ...line, "marker-end": "url(#arrow)" });
  return [svg("g", { class: `edge ${e.kind}` }, path, svg("title", about)), drawLabel(e, place, about)];
}

/** A name as lines: one, or two where there is little space, parted behind a mark in the middle. */
function titleOf(name, form) {
  if (form === WIDE) return [format.clip(name, TITLE)];
  const text = format.clip(format.called(name), 2 * LINE);
  if (text.length <= LINE) return [text];
  const ends = [...text.matchAll(/[_:.>]+/g)].map((m) => m.index + m[0].length);
  const fit = ends.filter((end) => end <= LINE && text.length - end <= LINE);
  const at = fit.at(-1) ?? LINE;
  return [text.slice(0, at), text.slice(at)];
}

const share = (x) => (x > 0 ? format.percent(100 * x, 200) : "–");
const sharesOf = (n) => {
  const [a, b] = [share(n.a), share(n.b)];
  return a === b ? (a === "–" ? "no time" : a) : `${a} → ${b}`;
};
const signed = (n) => {
  const d = n.b - n.a;
  if (kindOf(d) === "same") return "=";
  return n.certain ? `${signOf(d)} ${points(d)} points` : "≈";
};

/** What the box says, and what is known of it. */
function textsOf(n, form) {
  const shares = sharesOf(n);
  const lines = form === SLIM ? [signed(n), shares] : [`${signed(n)}${n.certain ? " ·" : ""} ${shares}`];
  const alone = n.at_a && n.at_b ? "" : n.at_a ? ", not among the first of B" : ", not among the first of A";
  const { verdict } = n;
  const range = verdict?.range ? ` (95 %: ${verdict.range})` : "";
  const known = verdict ? `: ${verdict.text}${range}` : ": no verdict";
  const sides = `${format.percent(100 * n.a, 200)} of A, ${format.percent(100 * n.b, 200)} of B`;
  return { lines, about: `${n.id}: ${sides}, ${points(n.b - n.a)} points${alone}${known}` };
}

function drawNode(n, place, state, form, mark) {
  const d = n.b - n.a;
  const where = n.at_a ? { build: state.build, ...n.at_a } : { build: state.against, ...n.at_b };
  const open = () =>
    go({
      ...another("report"),
      ...(n.at_a ? {} : sideQuestion(state, "b")),
      ...where,
      of: where.of === where.build ? "" : where.of,
    });
  const { lines, about } = textsOf(n, form);
  const title = titleOf(n.title, form);
  const inset = form === SLIM && title.length === 1 ? 7 : 0; // pixels by which a shorter text moves to the middle
  const middle = { x: n.w / 2, "text-anchor": "middle" };
  const box = svg(
    "g",
    {
      class: `node ${n.certain ? kindOf(d) : "same"}`,
      tabindex: 0,
      role: "link",
      "aria-label": about,
      onclick: open,
      onkeydown: pressed(open),
      onfocus: () => mark(n.id),
      onblur: () => mark(null),
    },
    svg("rect", { width: n.w, height: n.h, rx: 4, style: `--strong:${strength(d)}%` }),
    title.map((text, i) => svg("text.title", { ...middle, y: 17 + inset + 15 * i }, text)),
    lines.map((text, i) => svg("text", { ...middle, y: n.h - 9 - inset - 16 * (lines.length - 1 - i) }, text)),
    svg("title", about),
  );
  const wrap = { class: "item", transform: `translate(${place.x - n.w / 2},${place.y - n.h / 2})` };
  return svg("g", { ...wrap, onpointerenter: () => mark(n.id), onpointerleave: () => mark(null) }, box);
}

function table(state, nodes) {
  const rows = [...nodes].sort((x, y) => y.certain - x.certain || Math.abs(y.b - y.a) - Math.abs(x.b - x.a));
  const cells = (n) => [
    n.title,
    format.percent(100 * n.a, 200),
    format.percent(100 * n.b, 200),
    `${n.certain ? signOf(n.b - n.a) : "≈"} ${points(n.b - n.a)}`,
    n.verdict ? `${n.verdict.sign} ${n.verdict.text}` : "–",
    n.verdict?.range ?? "",
  ];
  const columns = [["Function"], ["A", 1], ["B", 1], ["Points", 1], ["Verdict"], ["Change, 95 %", 1]];
  return pictureTable(state, "arcs", `${rows.length} functions`, () =>
    plain("Functions by difference", columns, rows.map(cells)),
  );
}

/** The picture of those places. Gives {view, find}. */
function draw(shown, places, state, form) {
  const nodes = new Map();
  const edges = new Map();
  const view = svg("svg.graph.differences", {
    viewBox: `0 0 ${places.width} ${places.height}`,
    style: `width:${Math.ceil(places.width)}px;height:${Math.ceil(places.height)}px`,
    role: "group",
    "aria-label": "Differences of the call graph. A table with the same numbers follows.",
  });
  const { mark, find } = marking(view, shown, nodes, edges, (n) => n.id);
  shown.edges.forEach((e, i) => edges.set(e, drawEdge(e, places.edges[i])));
  for (const n of shown.nodes) nodes.set(n.id, drawNode(n, places.nodes.get(n.id), state, form, mark));
  const [lines, labels] = [0, 1].map((k) => [...edges.values()].map((parts) => parts[k]).filter(Boolean));
  view.append(arrowHead(), ...lines, ...labels, ...nodes.values());
  view.classList.toggle("bare", !places.labelled);
  return { view, find };
}

/** The field that marks boxes. */
function search(state, find) {
  const apply = (text) => {
    const hits = find(matcher(text));
    if (text) say(format.several(hits.length, "box matches", "boxes match"));
  };
  if (state.q) apply(state.q);
  return findField(state, "Find functions", apply);
}

export async function show(main, bars, diff, state, signal) {
  const [a, b] = await Promise.all([ask(state, "a", signal), ask(state, "b", signal)]);
  const form = innerWidth < NARROW ? SLIM : WIDE;
  const verdicts = judge(diff);
  const shown = merged(a, b, verdicts, form);
  const bar = el("div.compare.bar", bars);
  if (shown.nodes.length === 0) {
    replace(main, bar, el("p.empty", "No function has counts on either side."));
    return;
  }
  const box = el("div.picture", { tabIndex: 0, role: "region", "aria-label": "Differences of the call graph" });
  const signs = legend(CHANCE);
  const rest = el("p.hint", `The ${NODES} functions of each side with the most time. ${OPENS}`);
  const picture = form === WIDE ? [signs, box] : [box, signs];
  replace(main, bar, answerOf(diff, verdicts), picture, table(state, shown.nodes), rest);
  const size = { w: box.clientWidth || innerWidth, h: HIGH * innerHeight };
  const places = await layout(shown, size, form.gaps);
  const { view, find } = draw(shown, places, state, form);
  replace(box, view);
  if (form === WIDE) bar.append(search(state, find));
  const window = { w: box.clientWidth, h: box.clientHeight };
  const known = shown.nodes.some((n) => n.certain);
  const share = (n) => Math.max(n.a, n.b);
  const { passed, end } = trunk(
    shown,
    shown.nodes.reduce((m, n) => (share(n) > share(m) ? n : m)),
    share,
  );
  const weight = (n) => (known ? n.certain * Math.abs(n.b - n.a) : passed.has(n) ? 0 : share(n));
  const middle = busiest(shown.nodes, places, window, weight, known ? undefined : end);
  box.scrollTo(middle.x - window.w / 2, middle.y - window.h / 2);
}

const OPENS = "Percentages are of the CPU time of a side, with callees. A box opens its function.";
