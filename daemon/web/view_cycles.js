// Cycles: which is hottest, which functions are in it, which calls hold it together, and which to remove to break it.
import * as api from "./api.js";
import { el, region, replace } from "./dom.js";
import * as format from "./format.js";
import { drawWhole, sizeOf, thickness } from "./graph_draw.js";
import { layout } from "./graph_layout.js";
import { heat, labelOf } from "./graph_words.js";
import { another, go, question, remembersOpen, to } from "./state.js";
import { column, NARROW, numbers, plain, Table } from "./table.js";
import { bar, fitting, tile } from "./report_columns.js";

const ARCS_MOST = 200; // arcs and members of each cycle
const BREAK_MOST = 10; // that are named above the members
const DRAWN = 12; // members of a cycle that is drawn
const HIGH = 320; // pixels of the picture of a cycle

const slim = () => innerWidth < NARROW;

/** A member as a link to its callers and callees. */
function member(cycle, name, state) {
  const found = cycle.members.find((m) => m.name === name);
  if (!found) return name;
  return el(
    "a",
    { ...to(state, { ...another("report"), fn: found.address, of: "" }), title: found.name },
    fitting(format.called(name)),
  );
}

/** Says that a list is not whole. */
const cut = (shown, count) =>
  shown < count ? el("p.hint", `The first ${format.count(shown)} of ${format.count(count)}.`) : null;

const pairs = (n) => format.several(n, "pair of caller and callee", "pairs of caller and callee");

/** The arcs without which there is no cycle, as one sentence. */
function breaking(cycle, state) {
  const named = cycle.break.slice(0, BREAK_MOST);
  const others = cycle.break_count - named.length;
  const arcs = named.map((arc, i) => [
    i ? (i === named.length - 1 && !others ? " and " : ", ") : "",
    el("span.arc", member(cycle, arc.caller, state), " → ", member(cycle, arc.callee, state)),
    ` (${format.many(arc, "calls", "call", "calls")})`,
  ]);
  if (!others) {
    const what = named.length === 1 ? "this call" : `these ${named.length} calls`;
    return el("p", el("strong", "To break it, "), `remove ${what}: `, arcs, ".");
  }
  const all = `${format.count(cycle.break_count)} of its ${pairs(cycle.arc_count)}`;
  const many = `The calls of ${all} would have to go: `;
  return el("p", el("strong", "It is hard to break. "), many, arcs, ` and ${format.count(others)} more.`);
}

const keyOf = (arc) => `${arc.caller}\n${arc.callee}`;

/** The members and their calls as a picture; those that would break the cycle have a mark. */
async function picture(cycle, box, amount) {
  const marked = new Set(cycle.break.map(keyOf));
  const most = format.largest(cycle.arcs.map((a) => a.calls));
  const nodes = cycle.members.map((m) => {
    const self = `self ${amount(m.self_seconds)}`;
    const [outside, inside] = ["calls_outside", "calls_inside"].map((field) => format.exact(m, field));
    const calls = `${outside} calls from outside, ${inside} from members`;
    const act = () => go({ ...another("report"), fn: m.address, of: "" });
    const said = { label: labelOf(m.name), lines: [self], about: `${m.name}: ${self}, ${calls}`, kind: "", act };
    const node = { id: m.name, ...said, ...heat(m.self_seconds / (cycle.self_seconds || 1)) };
    return { ...node, ...sizeOf(node) };
  });
  const edges = cycle.arcs.map((a) => {
    const [breaks, calls] = [marked.has(keyOf(a)), `${format.short(a.calls)} ×`];
    const about = `${a.caller} → ${a.callee}: ${format.many(a, "calls", "call", "calls")}`;
    const said = breaks
      ? { kind: "breaks", text: `✂ ${calls}`, about: `${about}, would break it` }
      : { kind: "", text: calls, about };
    return { source: a.caller, target: a.callee, time: a.calls, thick: thickness(a.calls / most), ...said };
  });
  const shown = { nodes, edges, groups: [] };
  const places = await layout(shown, { w: box.clientWidth, h: HIGH });
  replace(box, drawWhole(shown, places, `Cycle ${cycle.number}. A table with the same calls follows.`).view);
}

function members(cycle, state, amount) {
  const rows = [...cycle.members].sort((a, b) => b.self_seconds - a.self_seconds);
  const line = (m) => [
    member(cycle, m.name, state),
    bar(amount(m.self_seconds), (100 * m.self_seconds) / (cycle.self_seconds || 1)),
    format.exact(m, "calls_outside"),
    format.exact(m, "calls_inside"),
  ];
  const from = slim() ? ["From outside", "From members"] : ["Calls from outside", "Calls from members"];
  const columns = [["Member"], ["Self", 1], ...from.map((title) => [title, 1])];
  const title = el("span.unseen", format.several(cycle.member_count, "member", "members"));
  const table = region("div.scroll", `Members of cycle ${cycle.number}`, plain(title, columns, rows.map(line)));
  return el("div.picture-table", table, cut(rows.length, cycle.member_count));
}

function arcs(cycle, state) {
  const breaks = new Set(cycle.break.map(keyOf));
  const line = (a) => [
    member(cycle, a.caller, state),
    member(cycle, a.callee, state),
    format.exact(a, "calls"),
    breaks.has(keyOf(a)) ? "would break it" : "",
  ];
  const columns = [["Caller"], ["Callee"], ["Calls", 1], ["Remove"]];
  const summary = el("summary", pairs(cycle.arc_count));
  const make = () => [
    region("div.scroll", `Calls in cycle ${cycle.number}`, plain("Calls among members", columns, cycle.arcs.map(line))),
    cut(cycle.arcs.length, cycle.arc_count),
  ];
  return remembersOpen(state, `arcs${cycle.number}`, el("details.picture-table", summary), make);
}

const shareOf = ({ percent }, ticks) => (percent > 0 ? `${format.share(percent, ticks)} of the time` : "no ticks");

/** A cycle. ticks: of all functions. */
function section(cycle, state, amount, ticks) {
  const facts = [
    ["In its members", amount(cycle.self_seconds)],
    ["With callees", amount(cycle.total_seconds)],
    ["Calls from outside", format.exact(cycle, "calls_outside")],
    ["Calls among members", format.exact(cycle, "calls_inside")],
  ];
  return el(
    "section.one-cycle",
    { "aria-label": `Cycle ${cycle.number}` },
    el(
      "div.bar.compare",
      el("h2", {}, `Cycle ${cycle.number}`),
      el("span.measure", bar(shareOf(cycle, ticks), cycle.percent)),
      el("a", to(state, { ...another("graph"), zoom: String(cycle.number) }), "In the call graph"),
    ),
    breaking(cycle, state),
    el("dl.tiles", facts.map((fact) => el("div", tile(fact)))),
    el(
      "div.drawn",
      cycle.member_count <= DRAWN && cycle.arcs.length === cycle.arc_count ? el("div.picture") : null,
      members(cycle, state, amount),
    ),
    arcs(cycle, state),
  );
}

/** How a cycle is called: by the member with the most time. */
function titleOf({ members: all, member_count: count }, short) {
  const top = all.reduce((a, b) => (b.self_seconds > a.self_seconds ? b : a));
  const more = short ? ` +${count - 1}` : ` and ${format.several(count - 1, "other", "others")}`;
  const others = count > 1 ? more : "";
  return `${fitting(format.called(top.name), 10, true)}${others}`;
}

/** How many there are, and which to look at. */
function summary(count, first, ticks) {
  const hottest = `The hottest is cycle ${first.number}, ${shareOf(first, ticks)}: ${titleOf(first)}.`;
  const hot = first.percent > 0 ? hottest : "No samples fell in any cycle.";
  return el("div.bar.compare", el("h2", format.several(count, "cycle", "cycles")), el("p.answer", el("strong", hot)));
}

/** All cycles; each leads to its members. */
function list({ rows, ticks }, state, amount) {
  const link = (c) => to(state, { focus: String(c.number), open: "" });
  const name = (c) => [el("span.chip", `↻${c.number}`), el("a", { ...link(c), tabIndex: -1 }, titleOf(c, slim()))];
  const share = (c) => bar(c.percent > 0 ? format.share(c.percent, ticks) : "–", c.percent);
  const columns = [
    column("number", "Cycle", { numeric: false, value: (c) => String(c.number).padStart(9, "0"), cell: name }),
    numbers("percent", "Time", { bars: true, width: 9.2, slim: 4.6, cell: share, hint: "of all, with callees" }),
    numbers("self_seconds", "In members", { width: 7.4, cell: (c) => amount(c.self_seconds) }),
    numbers("calls_inside", "Calls among members", { width: 11.5, cell: (c) => format.exact(c, "calls_inside") }),
    numbers("break_count", "To remove", { width: 7, hint: "pairs of members of which the calls hold it together" }),
  ];
  const open = (c) => go({ focus: String(c.number), open: "" });
  return new Table({ label: "Cycles", columns, rows, state, sort: "number", tall: true, open });
}

const NONE = "No functions of this build call each other in a circle. A function that only calls itself is no cycle.";
const MEASURED = "Times are measured: a stack counts for the cycle if one of its members is in it.";
const DIVIDED = "The time with callees is divided among callers by their numbers of calls, as in gprof.";

export async function draw(main, state, signal) {
  const { since, until, match, scope, dimension } = question(state);
  const url = api.path(state.build, "/cycles", { since, until, match, scope, dimension, limit: ARCS_MOST });
  const answer = await api.json(url, signal);
  const { rows } = answer;
  if (rows.length === 0) {
    replace(main, el("div.bar.compare", el("h2", "Cycles")), el("p.empty", NONE));
    return;
  }
  const amount = format.amounts(answer.dimension, answer);
  const shown = rows.find((c) => String(c.number) === state.focus) ?? rows[0];
  const one = section(shown, state, amount, answer.ticks);
  const hint = el("p.hint", answer.time === "measured" ? MEASURED : DIVIDED);
  if (rows.length > 1) {
    const table = list(answer, state, amount);
    const both = el("div.split", table.node, region("div.pane", "The cycle that was chosen", one));
    replace(main, summary(answer.count, rows[0], answer.ticks), both, hint);
    if (slim()) table.show(["percent", "self_seconds"], true);
    else if (innerWidth < 1700) table.show(["percent", "self_seconds", "break_count"]);
    table.restore();
    table.select(rows.indexOf(shown), false);
  } else replace(main, one, hint);
  const box = one.querySelector("div.picture");
  if (box) await picture(shown, box, amount);
}
