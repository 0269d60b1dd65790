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
