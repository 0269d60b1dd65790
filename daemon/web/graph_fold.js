// What the call graph shows, before it has places: cycles folded into one node, or the part around one function. Pure.
import * as format from "./format.js";

/** A node of a cycle. Its figures, callers and callees are those of the report, also if most of its members, or the
 *  callers, are not among the functions that were fetched. */
const cycleNode = (c) => ({
  id: `cycle-${c.cycle}`,
  title: `cycle ${c.cycle}`,
  cycle: String(c.cycle),
  whole: c,
  total_seconds: c.total_seconds,
});

/** The time of which the shares of an answer are. */
export const totalOf = (graph) =>
  format.largest(
    graph.nodes.map((n) => (n.percent > 0 ? (100 * n.total_seconds) / n.percent : 0)),
    0,
  );

/** Sums of edges by their ends. */
class Edges {
  all = new Map();

  add(source, target, calls, time, inside = false, known = {}) {
    if (source === target) return;
    const key = `${source} ${target}`;
    const sum = this.all.get(key);
    if (!sum) this.all.set(key, { source, target, calls, time, inside, ...known });
    else Object.assign(sum, { calls: sum.calls + calls, time: sum.time + time, low: undefined });
  }
}

/** Puts a folded cycle's callers and callees into nodes and edges. of(id): the node that stands for a function. */
function around(c, { nodes, edges, known, of }) {
  const id = `cycle-${c.cycle}`;
  const drawn = (row) => {
    const other = of(row.id);
    if (!nodes.has(other) && known.has(row.id)) nodes.set(other, known.get(row.id));
    return other;
  };
  const rest = (more, kind) => {
    if (!more.functions) return null;
    const key = `${id}-${kind}s`;
    const title = format.several(more.functions, `other ${kind}`, `other ${kind}s`);
    nodes.set(key, { id: key, title, total_seconds: more.total_seconds, rest: more });
    return key;
  };
  for (const row of c.callers) edges.add(drawn(row), id, row.calls, row.total_seconds);
  // A callee that is a folded cycle has this edge among its callers.
  for (const row of c.callees) if (of(row.id) === row.id) edges.add(id, drawn(row), row.calls, row.total_seconds);
  const callers = rest(c.more_callers, "caller");
  const callees = rest(c.more_callees, "callee");
  if (callers) edges.add(callers, id, c.more_callers.calls, c.more_callers.total_seconds);
  if (callees) edges.add(id, callees, c.more_callees.calls, c.more_callees.total_seconds);
}

/** graph: the daemon's answer. open: numbers of the cycles that are open, as texts. Gives {nodes, edges, groups}: an
 *  open cycle is a group of its members. */
export function fold(graph, open) {
  const folded = graph.cycles.filter((c) => !open.has(String(c.cycle)));
  const closed = new Set(folded.map((c) => c.cycle));
  const known = new Map([...graph.nodes, ...graph.context].map((n) => [n.id, n]));
  const cycleOf = (id) => known.get(id)?.cycle;
  const of = (id) => (closed.has(cycleOf(id)) ? `cycle-${cycleOf(id)}` : id);
  const nodes = new Map(folded.map((c) => [`cycle-${c.cycle}`, cycleNode(c)]));
  for (const n of graph.nodes) if (of(n.id) === n.id) nodes.set(n.id, n);
  const edges = new Edges();
  // Edges of a folded cycle come from the cycle, the others from the functions.
  for (const e of graph.edges) {
    const plain = of(e.source) === e.source && of(e.target) === e.target;
    const known = { low: e.low, high: e.high, stacks: e.stacks };
    if (plain) edges.add(e.source, e.target, e.calls, e.total_seconds, e.inside_cycle, known);
  }
  for (const c of folded) around(c, { nodes, edges, known, of });
  const opened = graph.cycles.filter((c) => open.has(String(c.cycle)));
  const groups = opened.map((c) => {
    const members = [...nodes.values()].filter((n) => n.cycle === c.cycle).map((n) => n.id);
    return { ...cycleNode(c), members };
  });
  return { nodes: [...nodes.values()], edges: [...edges.all.values()], groups: groups.filter((g) => g.members.length) };
}

const PASSED_ON = 0.98; // of its time: what a function passes on that is not worth a place

/** Ends of edges by node: from(edge) → to(edge), most time first. */
function ends(edges, from) {
  const out = new Map();
  for (const e of [...edges].sort((a, b) => b.time - a.time || b.calls - a.calls)) {
    (out.get(e[from]) ?? out.set(e[from], []).get(e[from])).push(e);
  }
  return out;
}

/** Ids within that many calls of start, in one direction. */
function reached(start, depth, edges, to) {
  const seen = new Map([[start, 0]]);
  for (const [id, level] of seen) {
    if (level < depth) for (const e of edges.get(id) ?? []) if (!seen.has(e[to])) seen.set(e[to], level + 1);
  }
  return seen;
}

/** The part of a graph that those nodes are. */
export function partOf({ edges, groups }, nodes) {
  const kept = new Set(nodes.map((n) => n.id));
  const within = groups.map((g) => ({ ...g, members: g.members.filter((id) => kept.has(id)) }));
  return {
    nodes,
    edges: edges.filter((e) => kept.has(e.source) && kept.has(e.target)),
    groups: within.filter((g) => g.members.length),
  };
}

/** The functions that reach start, or that it reaches, within depth calls; at most most of them, the nearest and then
 *  those with the most time. left: how many more there are. */
export function near(graph, start, depth, most) {
  const { nodes, edges } = graph;
  const up = reached(start, depth, ends(edges, "target"), "source");
  const down = reached(start, depth, ends(edges, "source"), "target");
  const level = (n) => Math.min(up.get(n.id) ?? Infinity, down.get(n.id) ?? Infinity);
  const all = nodes
    .filter((n) => level(n) < Infinity)
    .sort((a, b) => level(a) - level(b) || b.total_seconds - a.total_seconds);
  return { ...partOf(graph, all.slice(0, most)), left: Math.max(0, all.length - most) };
}

/** Without some boxes. hide, ignore: tell for a node; ignore takes those along that are reached through it alone. The
 *  numbers of the others stay. */
export function without(graph, hide, ignore) {
  const { nodes, edges } = graph;
  const ignored = nodes.filter(ignore).map((n) => n.id);
  const called = ends(edges, "source");
  const free = new Map([...called].map(([id, list]) => [id, list.filter((e) => !ignored.includes(e.target))]));
  const callees = new Set(edges.map((e) => e.target));
  const all = (starts, by) => new Set(starts.flatMap((id) => [...reached(id, Infinity, by, "target").keys()]));
  const below = all(ignored, called);
  const rest = nodes.filter((n) => !ignored.includes(n.id) && (!callees.has(n.id) || !below.has(n.id)));
  const seen = all(
    rest.map((n) => n.id),
    free,
  );
  return partOf(
    graph,
    nodes.filter((n) => seen.has(n.id) && !hide(n)),
  );
}

/** The edges of most time from a node up to a root. */
function wayUp(callers, id) {
  const way = [];
  const passed = new Set();
  for (let at = id; at !== undefined; at = way.at(-1)?.source) {
    passed.add(at);
    const e = callers.get(at)?.find((c) => !passed.has(c.source));
    if (!e) break;
    way.push(e);
  }
  return way;
}

/** The nodes with the most time of their own first, each behind the way of most time to it. What stands above all of it
 *  and only passes its time on, as start-up code does, comes last. selfOf(node): its own time. */
export function hottest({ nodes, edges, start }, selfOf) {
  const callers = ends(edges, "target");
  const byId = new Map(nodes.map((n) => [n.id, n]));
  const order = new Set(start ? [start] : []);
  for (const n of [...nodes].sort((a, b) => selfOf(b) - selfOf(a) || b.total_seconds - a.total_seconds))
    for (const e of [...wayUp(callers, n.id).reverse(), { target: n.id }])
      for (const id of [e.source, e.target]) if (byId.has(id)) order.add(byId.get(id));
  const calls = ends(edges, "source");
  const passes = (n) => {
    const [only] = n && n !== start && !selfOf(n) ? (calls.get(n.id) ?? []) : [];
    return only?.time >= PASSED_ON * n.total_seconds ? byId.get(only.target) : undefined;
  };
  const trunk = new Set();
  for (let n = [...order].find((m) => !callers.has(m.id)); passes(n) && !trunk.has(n); n = passes(n)) trunk.add(n);
  return [...order].filter((n) => !trunk.has(n)).concat([...trunk]);
}

/** What belongs to a node: its callers and callees, and the path of most time from a root to it. */
export function related({ edges }, id) {
  const ids = new Set([id]);
  const marked = new Set();
  const mark = (e) => {
    marked.add(e);
    ids.add(e.source).add(e.target);
  };
  for (const e of edges) if (e.source === id || e.target === id) mark(e);
  for (const e of wayUp(ends(edges, "target"), id)) mark(e);
  return { ids, edges: marked };
}
