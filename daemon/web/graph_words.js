// What the boxes and lines of the call graph say, and how hot they look.
import * as format from "./format.js";
import { totalOf } from "./graph_fold.js";
import { sizeOf, thickness } from "./graph_draw.js";
import { sampled } from "./origin.js";
import { NARROW } from "./table.js";

const [TITLE, SHORT] = [28, 13]; // characters of a name; where there is little space
const [SMALL, LARGE] = [13, 22]; // pixels of a name's letters: by the time of its own

/** How amounts read, and what stands before calls that were sampled. */
export const lookOf = (graph) => ({
  amount: format.amounts(graph.dimension, graph),
  percent: (value) => format.share(value, graph.ticks),
  measured: graph.time === "measured",
  mark: sampled({ provenance: graph }) ? "~" : "",
  total: totalOf(graph),
});

/** The time of a box's own code. */
export const selfOf = (n) => n.whole?.self_seconds ?? (n.rest ? 0 : n.self_seconds);

/** How hot a box is by its own part of all: letters and colour follow the root of it, so that small parts are seen. */
export function heat(part, slim = innerWidth < NARROW) {
  const root = Math.sqrt(Math.min(1, part));
  return {
    letters: Math.round(SMALL + (slim ? 0 : LARGE - SMALL) * root),
    style: `--share:${(100 * root).toFixed(1)}%`,
  };
}

/** A name as a box has it. */
export const labelOf = (title) => format.clip(title, innerWidth < NARROW ? SHORT : TITLE);

/** The interval of a measured time. */
const rangeOf = ({ low, high, stacks }, look) =>
  look.measured && low !== undefined
    ? `, 95 %: ${look.amount.between(low, high)}, ${format.several(stacks, "stack", "stacks")}`
    : "";

/** What a cycle adds up. */
function cycleText(c, look) {
  const outside = format.many(c, "calls_outside", "call", "calls");
  const among = format.exact(c, "calls_inside");
  const calls = `${look.mark}${outside} from outside, ${look.mark}${among} among its members`;
  return `self ${look.amount(c.self_seconds)}, ${calls}`;
}

/** What a box says below its name, and what is said of it beyond that. */
function textsOf(n, look) {
  const total = look.amount(n.total_seconds);
  const calls = look.mark + format.several(n.rest?.calls ?? n.calls, "call", "calls");
  if (n.rest) return [total, `, ${calls}`];
  if (n.whole) {
    const opens = n.whole.members_shown ? ", opens in place" : "";
    const times = `${format.several(n.whole.members, "function", "functions")}, ${look.amount(n.whole.total_seconds)}`;
    return [times, `, ${cycleText(n.whole, look)}${opens}`];
  }
  const self = `self ${look.amount(n.self_seconds)}`;
  const again = n.self_calls ? `, ${format.count(n.self_calls)} recursive` : "";
  const [below, aside] = innerWidth < NARROW ? [total, `, ${self}`] : [`${total} · ${self}`, ""];
  return [below, `${aside}${rangeOf(n, look)}, ${calls}${again}`];
}

/** What stands at all lines: numbers of calls, or times where most calls are not counted. */
export const counted = (edges, look) => !look.measured || 2 * edges.filter((e) => e.calls > 0).length >= edges.length;

/** Gives nodes, edges and groups what drawGraph() needs of them. */
export function describe({ nodes, edges, groups }, look) {
  const part = (time) => (look.total > 0 ? time / look.total : 0);
  for (const n of nodes) {
    const [below, more] = textsOf(n, look);
    const share = look.percent(100 * Math.min(1, part(n.total_seconds)));
    const about = `${n.name ?? n.title} ${below}, ${share}${more}`;
    const said = { label: labelOf(n.title), lines: [below], about, kind: n.whole ? "cycle" : "", near: !n.rest };
    Object.assign(n, said, heat(part(selfOf(n))));
    Object.assign(n, sizeOf(n));
  }
  const calls = counted(edges, look);
  const text = (e) => (calls ? `${look.mark}${format.short(e.calls)} ×` : look.amount(e.time));
  for (const e of edges) {
    const uncounted = look.measured && !(e.calls > 0);
    const said = uncounted ? "seen in stacks only" : look.mark + format.several(e.calls, "call", "calls");
    const time = e.inside ? "inside a cycle" : look.amount(e.time) + rangeOf(e, look);
    const about = `${said}, ${time}`;
    Object.assign(e, { text: calls && uncounted ? "" : text(e), about, kind: e.inside ? "inside" : "" });
    e.thick = thickness(part(e.time));
  }
  for (const g of groups) {
    const hidden = g.whole.members - g.members.length;
    const others = hidden > 0 ? ` ${format.several(hidden, "member is", "members are")} not shown.` : "";
    g.text = `× ${g.title}, ${look.amount(g.whole.total_seconds)}`;
    g.about = `${g.title}: ${look.amount(g.whole.total_seconds)}, ${cycleText(g.whole, look)}.${others}`;
  }
}
