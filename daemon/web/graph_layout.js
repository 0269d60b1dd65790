// Places of a call graph, by dagre: callers before callees, members of an open cycle together.
const GAPS = { nodesep: 14, edgesep: 8, ranksep: 26, marginx: 4, marginy: 4 };
const MANY = 90; // nodes from which only one direction is tried, with the faster ranking
const LABELS = 70; // edges up to which every one has its label in the picture

/** dagre is loaded by the first graph. It is no module: it puts itself into the global object. */
const library = async () => (await import("./dagre.js"), globalThis.dagre);

/** Boxes without an edge stand in rows below the others. Gives the height of all. */
function rows(alone, places, width, top, gaps) {
  let x = 0;
  let y = top;
  for (const n of alone) {
    if (x > 0 && x + n.w > width) {
      x = 0;
      y += n.h + gaps.nodesep;
    }
    places.set(n.id, { x: x + n.w / 2, y: y + n.h / 2 });
    x += n.w + gaps.nodesep;
  }
  return alone.length ? y + alone[0].h : top;
}

function place(dagre, { nodes, edges, groups }, rankdir, size, gaps) {
  const graph = new dagre.graphlib.Graph({ compound: true, multigraph: true });
  const ranker = nodes.length > MANY ? "longest-path" : "network-simplex";
  graph.setGraph({ ...gaps, rankdir, ranker });
  graph.setDefaultEdgeLabel(() => ({}));
  const joined = new Set([...edges.flatMap((e) => [e.source, e.target]), ...groups.flatMap((g) => g.members)]);
  for (const n of nodes) if (joined.has(n.id)) graph.setNode(n.id, { width: n.w, height: n.h });
  for (const g of groups) {
    graph.setNode(g.id, {});
    for (const id of g.members) graph.setParent(id, g.id);
  }
  const labelled = edges.length <= LABELS;
  edges.forEach((e, i) => {
    const label = labelled && e.text ? { width: 7 * e.text.length + 4, height: 14, labelpos: "c" } : {};
    graph.setEdge(e.source, e.target, label, String(i));
  });
  if (joined.size) dagre.layout(graph);
  const { width = 0, height = 0 } = graph.graph();
  const places = new Map([...joined].map((id) => [id, graph.node(id)]));
  const alone = nodes.filter((n) => !joined.has(n.id));
  const wide = Math.max(width, Math.min(size.w, 180 * alone.length));
  return {
    nodes: places,
    groups: new Map(groups.map((g) => [g.id, graph.node(g.id)])),
    edges: edges.map((e, i) => graph.edge(e.source, e.target, String(i))),
    width: alone.length ? wide : width,
    height: alone.length ? rows(alone, places, wide, height ? height + gaps.ranksep : 0, gaps) : height,
    labelled,
  };
}

/** The middle of the window of that size that shows most weight. weight(node); must: a node that it shows. */
export function busiest(nodes, places, size, weight, must) {
  const at = (n) => places.nodes.get(n.id);
  const clamp = (middle, part, whole) =>
    part >= whole ? whole / 2 : Math.min(Math.max(middle, part / 2), whole - part / 2);
  const shows = (middle, n) =>
    Math.abs(at(n).x - middle.x) <= (size.w - n.w) / 2 && Math.abs(at(n).y - middle.y) <= (size.h - n.h) / 2;
  let best = { sum: -1 };
  const between = (p, q) => ({ x: (p.x + q.x) / 2, y: (p.y + q.y) / 2 });
  const centres = must ? [at(must), ...nodes.flatMap((n) => [at(n), between(at(n), at(must))])] : nodes.map(at);
  for (const { x, y } of centres) {
    const middle = { x: clamp(x, size.w, places.width), y: clamp(y, size.h, places.height) };
    if (must && best.sum >= 0 && !shows(middle, must)) continue;
    const sum = nodes.reduce((all, m) => all + (shows(middle, m) ? weight(m) : 0), 0);
    if (sum > best.sum) best = { ...middle, sum };
  }
  return best;
}

const PASSED_ON = 0.9; // of its time: what a function of the trunk passes on to one callee

/** end: the first function from the root on that does not only pass its time on, as start-up code does; passed: those
 *  that do, before it. timeOf(node). */
export function trunk(shown, root, timeOf) {
  const next = (n) => {
    const called = shown.edges.filter((e) => e.source === n.id && e.target !== n.id);
    const main = called.find((e) => e.time >= PASSED_ON * timeOf(n));
    return main && shown.nodes.find((m) => m.id === main.target && !m.whole);
  };
  const way = (from) => {
    const seen = new Set();
    for (let n = from; n && !seen.has(n); n = next(n)) seen.add(n);
    return [...seen];
  };
  const end = way(root).at(-1);
  return { passed: new Set(shown.nodes.filter((n) => n !== end && way(n).includes(end))), end };
}

/** graph: {nodes: {id, w, h}, edges: {source, target, text}, groups: {id, members}}; size: of the window that shows
 *  it. gaps: of dagre. Of downwards and to the right, the direction that needs less shrinking. */
export async function layout(graph, size, gaps = GAPS) {
  const dagre = await library();
  const down = place(dagre, graph, "TB", size, gaps);
  const scale = (p) => Math.min(size.w / p.width, size.h / p.height);
  if (scale(down) >= 1 || graph.nodes.length > MANY) return down;
  const right = place(dagre, graph, "LR", size, gaps);
  return scale(right) > scale(down) ? right : down;
}
