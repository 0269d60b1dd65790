// Two call graphs as one: the functions with the most time on either side. A box is coloured where its difference is
// more than chance.
import { kindOf, points, signOf, strength } from "./compare_flame.js";
import { answerOf, judge, legend, reports } from "./compare_judge.js";
import { sideQuestion } from "./compare_sides.js";
import { el, region, replace } from "./dom.js";
import * as format from "./format.js";
import { drawWhole, sizeOf, thickness } from "./graph_draw.js";
import { totalOf } from "./graph_fold.js";
import { layout } from "./graph_layout.js";
import { labelOf } from "./graph_words.js";
import { another, go } from "./state.js";
import { finder, NARROW, pictureTable, plain } from "./table.js";

const NODES = 40; // functions of each side
const HIGH = 0.72; // of the window: the height of the picture
const LETTERS = 13; // pixels of a name's letters
const CLOSE = { nodesep: 6, edgesep: 4, ranksep: 17, marginx: 2, marginy: 2 }; // where there is little space

const slim = () => innerWidth < NARROW;

/** Adds the nodes and edges of a side, as shares of its time. */
function gather(graph, nodes, edges, side) {
  const total = totalOf(graph) || 1;
  const names = new Map();
  for (const n of graph.nodes) {
    const id = n.name ?? n.title;
    names.set(n.id, id);
    const node = nodes.get(id) ?? nodes.set(id, { id, title: n.title, name: id, a: 0, b: 0 }).get(id);
    node[side] += n.total_seconds / total;
    node[`self_${side}`] = n.self_seconds / total;
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
function merged(a, b, verdicts) {
  const [nodes, edges] = [new Map(), new Map()];
  gather(a, nodes, edges, "a");
  gather(b, nodes, edges, "b");
  for (const n of nodes.values()) {
    n.verdict = verdicts.of(n.id);
    n.certain = ["more", "less"].includes(n.verdict?.kind);
  }
  for (const e of edges.values()) {
    const d = e.b - e.a;
    const certain = nodes.get(e.target).certain;
    e.kind = certain ? kindOf(d) : "same";
    e.time = Math.max(e.a, e.b);
    e.text = slim() ? "" : e.kind !== "same" ? `${signOf(d)} ${points(d)}` : kindOf(d) === "same" ? "=" : "≈";
  }
  return { nodes: [...nodes.values()], edges: [...edges.values()], groups: [] };
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

/** Gives boxes and arcs what drawGraph() needs of them. */
function describe({ nodes, edges }, state) {
  for (const n of nodes) {
    const alone = n.at_a && n.at_b ? "" : n.at_a ? ", not among the first of B" : ", not among the first of A";
    const range = n.verdict?.range ? ` (95 %: ${n.verdict.range})` : "";
    const known = n.verdict ? `: ${n.verdict.text}${range}` : ": no verdict";
    const sides = `${format.percent(100 * n.a, 200)} of A, ${format.percent(100 * n.b, 200)} of B`;
    n.about = `${n.id}: ${sides}, ${points(n.b - n.a)} points${alone}${known}`;
    n.lines = slim() ? [signed(n), sharesOf(n)] : [`${signed(n)}${n.certain ? " ·" : ""} ${sharesOf(n)}`];
    n.kind = n.certain ? kindOf(n.b - n.a) : "same";
    Object.assign(n, { label: labelOf(n.title), letters: LETTERS, style: `--strong:${strength(n.b - n.a)}%` });
    Object.assign(n, sizeOf(n));
    const other = () => ({ ...sideQuestion(state, "b"), build: state.against, ...n.at_b });
    const side = n.at_a ? { build: state.build, ...n.at_a } : other();
    n.act = () => go({ ...another("report"), ...side, of: side.of === side.build ? "" : side.of });
  }
  for (const e of edges) {
    e.about =
      `${e.source} → ${e.target}: ${format.percent(100 * e.a, 200)} of A, ${format.percent(100 * e.b, 200)} of B; ` +
      `calls ${format.count(e.calls_a)} and ${format.count(e.calls_b)}`;
    e.thick = thickness(e.time);
  }
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

export async function show(main, bars, diff, state, signal) {
  const [a, b] = await reports(state, { format: "graph", limit: NODES }, signal);
  const verdicts = judge(diff);
  const shown = merged(a, b, verdicts);
  describe(shown, state);
  const bar = el("div.compare.bar", bars);
  if (shown.nodes.length === 0) {
    replace(main, bar, el("p.empty", "No function has counts on either side."));
    return;
  }
  const box = region("div.picture", "Differences of the call graph");
  const signs = legend(diff, verdicts, shown.nodes.map((n) => n.id));
  const rest = el("p.hint", `The ${NODES} functions of each side with the most time. ${OPENS}`);
  const picture = slim() ? [box, signs] : [signs, box];
  replace(main, bar, answerOf(diff, verdicts), picture, table(state, shown.nodes), rest);
  const size = { w: box.clientWidth || innerWidth, h: HIGH * innerHeight };
  const places = await layout(shown, size, slim() ? CLOSE : undefined);
  const about = "Differences of the call graph. A table with the same numbers follows.";
  const { view, find } = drawWhole(shown, places, about);
  view.classList.add("differences");
  replace(box, view);
  const { field, apply } = finder(state, find);
  if (state.q) apply(state.q);
  if (!slim()) bar.append(field);
  // The largest difference that is no chance is in sight, or what has the most time of its own.
  const known = shown.nodes.some((n) => n.certain);
  const weight = (n) => (known ? n.certain * Math.abs(n.b - n.a) : Math.max(n.self_a ?? 0, n.self_b ?? 0));
  const first = shown.nodes.reduce((m, n) => (weight(n) > weight(m) ? n : m));
  const { x, y } = places.nodes.get(first.id);
  box.scrollTo(x - box.clientWidth / 2, y - box.clientHeight / 2);
}

const OPENS = "Percentages are of the CPU time of a side, with callees. A box opens its function.";
