// A layered drawing of a call graph (Sugiyama, Tagawa, Toda 1981): callers above callees. Pure: nodes and edges in, places out.

/** Edges that go back to an ancestor would turn layers around: a depth-first search finds and reverses them. */
function forward(nodes, out) {
  const state = new Map(nodes.map((n) => [n.id, 0]));
  const edges = [];
  for (const start of nodes) {
    if (state.get(start.id) !== 0) continue;
    const stack = [[start.id, 0]];
    state.set(start.id, 1);
    while (stack.length) {
      const top = stack[stack.length - 1];
      const next = (out.get(top[0]) || [])[top[1]++];
      if (next === undefined) {
        state.set(top[0], 2);
        stack.pop();
      } else if (state.get(next) === 1) {
        edges.push([next, top[0]]);
      } else {
        edges.push([top[0], next]);
        if (state.get(next) === 0) {
          state.set(next, 1);
          stack.push([next, 0]);
        }
      }
    }
  }
  return edges;
}

/** The longest path from a root is a node's layer. */
function layersOf(nodes, edges) {
  const waits = new Map(nodes.map((n) => [n.id, 0]));
  const out = new Map(nodes.map((n) => [n.id, []]));
  for (const [a, b] of edges) {
    waits.set(b, waits.get(b) + 1);
    out.get(a).push(b);
  }
  const layer = new Map(nodes.map((n) => [n.id, 0]));
  const ready = nodes.filter((n) => waits.get(n.id) === 0).map((n) => n.id);
  for (let i = 0; i < ready.length; i++) {
    for (const to of out.get(ready[i])) {
      layer.set(to, Math.max(layer.get(to), layer.get(ready[i]) + 1));
      waits.set(to, waits.get(to) - 1);
      if (waits.get(to) === 0) ready.push(to);
    }
  }
  return layer;
}

/** Rows of ids (and of "dummies" where an edge passes a layer), ordered so that few edges cross: barycentres, down and up. */
function order(nodes, edges, layer) {
  const rows = [];
  const put = (id, l) => (rows[l] ??= []).push(id);
  const near = new Map();
  const join = (a, b) => {
    (near.get(a) ?? near.set(a, { up: [], down: [] }).get(a)).down.push(b);
    (near.get(b) ?? near.set(b, { up: [], down: [] }).get(b)).up.push(a);
  };
  for (const n of nodes) put(n.id, layer.get(n.id));
  const paths = new Map();
  for (const [a, b] of edges) {
    let last = a;
    const path = [a];
    for (let l = layer.get(a) + 1; l < layer.get(b); l++) {
      const dummy = `${a}>${b}@${l}`;
      if (!near.has(dummy)) put(dummy, l);
      join(last, dummy);
      path.push(dummy);
      last = dummy;
    }
    join(last, b);
    path.push(b);
    paths.set(`${a} ${b}`, path);
  }
  for (let round = 0; round < 16; round++) {
    const down = round % 2 === 0;
    const place = new Map();
    for (const row of rows) row.forEach((id, i) => place.set(id, i / row.length));
    const list = down ? rows.slice(1) : rows.slice(0, -1).reverse();
    for (const row of list) {
      const key = new Map(
        row.map((id) => {
          const around = near.get(id)?.[down ? "up" : "down"] ?? [];
          return [id, around.length ? around.reduce((sum, o) => sum + place.get(o), 0) / around.length : place.get(id)];
        }),
      );
      row.sort((a, b) => key.get(a) - key.get(b));
      row.forEach((id, i) => place.set(id, i / row.length));
    }
  }
  return { rows, paths };
}

/** nodes: {id, w, h}; edges: {source, target}. Gives {places: id → {x, y}, paths: "source target" → points, width, height}. */
export function layout(nodes, edges, gapX = 24, gapY = 70) {
  const out = new Map();
  for (const e of edges)
    if (e.source !== e.target) (out.get(e.source) ?? out.set(e.source, []).get(e.source)).push(e.target);
  const ahead = forward(nodes, out);
  const layer = layersOf(nodes, ahead);
  const { rows, paths } = order(nodes, ahead, layer);
  const size = new Map(nodes.map((n) => [n.id, n]));
  const places = new Map();
  const widths = rows.map((row) => row.reduce((sum, id) => sum + (size.get(id)?.w ?? 12) + gapX, -gapX));
  const width = Math.max(...widths, 1);
  let y = 0;
  rows.forEach((row, l) => {
    let x = (width - widths[l]) / 2;
    let tallest = 0;
    for (const id of row) {
      const w = size.get(id)?.w ?? 12;
      const h = size.get(id)?.h ?? 0;
      places.set(id, { x: x + w / 2, y, h });
      x += w + gapX;
      tallest = Math.max(tallest, h);
    }
    for (const id of row) places.get(id).y += tallest / 2;
    y += tallest + gapY;
  });
  const lines = new Map();
  for (const [key, path] of paths) {
    const [a, b] = key.split(" ");
    const points = path.map((id) => places.get(id));
    lines.set(key, points);
    lines.set(`${b} ${a}`, [...points].reverse());
  }
  return { places, lines, width, height: Math.max(1, y - gapY) };
}
