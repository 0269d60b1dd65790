// One function: callers on the left, callees on the right, calls on every arc. A cycle is one node that opens in place.
import * as api from "./api.js";
import { otherViews } from "./choices.js";
import { button, copy, el, facts, replace, say } from "./dom.js";
import * as format from "./format.js";
import { SAMPLED, sampled } from "./origin.js";
import { arcs } from "./pane_arcs.js";
import { totalText } from "./report_columns.js";
import { functionAt, question, remembersOpen, to } from "./state.js";
import { seriesPart } from "./series.js";
import { NARROW } from "./table.js";

/** Where a row leads: indexes are those of the whole report, which the table knows. What was not called in the window
 *  has none. */
function resolver(state, flat) {
  const places = new Map(Array.from(flat.columns.index, (index, i) => [index, i]));
  return (row) => {
    const i = places.get(row.index);
    return i === undefined
      ? to(state, { fn: "", of: "", q: row.name })
      : to(state, functionAt(state, flat.columns.address[i], flat.id(i)));
  };
}

function cyclePart(cycle, look, state) {
  const outside = `${look.mark}${format.exact(cycle, "calls_outside")} times from outside`;
  const inside = `${look.mark}${format.exact(cycle, "calls_inside")} times inside`;
  const time = hasMeasured(cycle, look)
    ? `${look.amount(cycle.measured_total)} measured, ${shareOf(cycle.measured_total, look)}`
    : `${look.amount(cycle.total_seconds)}, ${format.share(cycle.percent, look.ticks)}`;
  const closed = cycle.closed ? "" : "; the calls shown do not close it: cycles are those of all stored time";
  const summary = el("summary", `Cycle ${cycle.number}: ${time}, called ${outside}, ${inside}${closed}`);
  const members = cycle.members.map((m) => ({ ...m, inside: false }));
  return remembersOpen(state, "cycle", el("details.cycle", summary), () => [
    arcs("Members, with calls from members", members, look, cycle.members_left_out),
    arcs("Callers of the cycle", [...cycle.callers].reverse(), look, cycle.callers_left_out),
    arcs("Called by the cycle", cycle.callees, look, cycle.callees_left_out),
  ]);
}

/** Calls of a function in the whole report, by its row there: "per call" divides by them. */
function callsOf(flat) {
  const c = flat.columns;
  const places = new Map(Array.from(c.index, (index, i) => [index, i]));
  return (index) => {
    const i = places.get(index);
    return i === undefined ? Number.NaN : Number(c.calls[i]) + Number(c.self_calls[i]);
  };
}

/** short: the name without its template arguments. */
const heading = (name, state, short = name) =>
  el(
    "div.bar",
    el("h2.function", { title: name }, innerWidth < NARROW ? format.called(name) : short),
    button("Copy name", () => copy(name, "Name")),
    otherViews(state, state.fn, state.of).map(([text, link]) => el("a", link, text)),
    el("a", { ...to(state, { fn: "", of: "" }), id: "pane-close" }, "Close"),
  );
const list = (all) => facts(all.map(([name, text]) => [name, { title: text.length > 80 ? text : null }, text]));

/** What the table knows already is shown while callers and callees are asked for. */
function early(pane, state, flat) {
  const { columns } = flat;
  const own = (address, k) => address === state.fn && flat.id(k).startsWith(state.of || state.build);
  const i = columns.address.findIndex(own);
  if (i < 0 && pane.hasChildNodes()) return;
  const row = Object.fromEntries(Object.entries(columns).map(([key, list]) => [key, list?.[i]]));
  const known = i < 0 ? [] : factsOf({ ...row, build_id: flat.id(i) }, lookOf(flat.report)).slice(0, 3);
  const waits = el("p", { role: "status" }, "Loading…");
  replace(pane, heading(row.name ?? state.fn, state, row.short_name ?? row.name), list(known), waits);
}

/** How numbers of an answer read, and where rows lead. all: asks for the rows that were left out. */
function lookOf(answer, own, all) {
  const { dimension, seconds, ticks } = answer.totals;
  const title = dimension === "seconds" || dimension === "wall" ? "Time" : dimension;
  const mark = sampled(answer) ? "~" : "";
  const amount = format.amounts(dimension, answer.totals);
  return { amount, mark, title, total: seconds, ticks, own, all, measured: answer.time === "measured" };
}

const shareOf = (time, look) => format.share(look.total > 0 ? (100 * time) / look.total : 0, look.ticks);

/** A measured time, its interval, and that by numbers of calls where it is another. */
function measuredOf(f, look) {
  const range = look.amount.between(f.measured_low, f.measured_high);
  const share = totalText((time) => shareOf(time, look), f.measured_total, f.self_seconds);
  const calls = f.measured_differs ? `; by numbers of calls ${look.amount(f.total_seconds)}, outside the interval` : "";
  const stacks = format.several(f.measured_samples, "stack", "stacks");
  return `${totalText(look.amount, f.measured_total, f.self_seconds)} (${share}), 95 %: ${range}, ${stacks}${calls}`;
}

const hasMeasured = (f, look) => look.measured && f.measured_total !== undefined;

function factsOf(f, look) {
  const calls =
    look.mark + format.exact(f, "calls") + (f.self_calls ? ` + ${format.exact(f, "self_calls")} recursive` : "");
  const each = (time) => (time > 0 || look.title !== "Time" ? look.amount(time / f.calls, time) : "not known");
  const share = shareOf(f.self_seconds, look);
  const range = Number.isFinite(f.self_least) ? `; ${format.selfRange(look.amount, f.self_least, f.self_most)}` : "";
  const none = "no calls from other functions in this time range";
  const whole = hasMeasured(f, look) ? f.measured_total : f.total_seconds;
  return [
    ["Self", `${format.self(look.amount, f.self_seconds, f.self_least)} (${share}${range})`],
    hasMeasured(f, look)
      ? ["Total, measured", measuredOf(f, look)]
      : ["Total", `${look.amount(f.total_seconds)} (${format.share(f.percent, look.ticks)})`],
    ["Calls", calls],
    look.mark ? null : ["Per call", f.calls ? `self ${each(f.self_seconds)}, total ${each(whole)}` : none],
    ["Address", `${f.address} in ${format.brief(f.build_id)}`],
    f.file ? ["File", f.file] : null,
    f.aliases?.length ? ["Also", f.aliases.join(", ")] : null,
    f.raw_name !== f.name ? ["Symbol", f.raw_name] : null,
  ].filter(Boolean);
}

/** limit "0": all callers and callees; else the heaviest ones. */
export async function functionPane(pane, state, flat, signal, limit = undefined) {
  const params = { ...question(state), build_id: state.of || undefined, limit, names: "short" };
  pane.hidden = false;
  early(pane, state, flat);
  let answer;
  try {
    answer = await api.json(api.path(state.build, `/functions/${encodeURIComponent(state.fn)}`, params), signal);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    replace(pane, el("p.warning", error.message), el("p", el("a", to(state, { fn: "", of: "" }), "Close")));
    return;
  }
  const f = answer.functions[0];
  const look = lookOf(answer, resolver(state, flat), () => functionPane(pane, state, flat, signal, "0"));
  const spontaneous = {
    name: "<spontaneous>",
    calls: 0,
    of_calls: 0,
    self_seconds: f.self_seconds,
    children_seconds: f.children_seconds,
  };
  const callers = [...(f.spontaneous ? [spontaneous] : []), ...[...f.callers].reverse(), ...f.static_callers];
  const callees = [...f.callees, ...f.static_callees];
  const of = callsOf(flat);
  const exact = answer.provenance.calls_exact ? "exact" : "counted, but some are missing or ambiguous";
  const by = f.measured_by === "groups" ? "the differences between processes" : "the number of stacks";
  const intervals = `Intervals are from ${by}. Total over time is divided by numbers of calls.`;
  const divided = look.measured
    ? `Times of callers and callees are measured: a stack counts for the caller that it shows. ${intervals}`
    : "A callee's time is divided among its callers by their calls, as in gprof.";
  replace(
    pane,
    heading(f.name, state, f.short_name ?? f.name),
    list(factsOf(f, look)),
    el(
      "div.butterfly",
      arcs("Callers", callers, look, f.callers_left_out, (r) => r.calls / of(r.index)),
      arcs("Callees", callees, look, f.callees_left_out, (r) => r.calls / (f.calls + f.self_calls)),
    ),
    answer.cycles.filter((c) => c.number === f.cycle).map((c) => cyclePart(c, look, state)),
    el("p.hint", `Calls are ${look.mark ? SAMPLED : exact}. ${divided}`),
    seriesPart(state, f, answer, look, signal),
  );
  pane.scrollTop = 0;
  const known = (list, one, several) =>
    format.several(f[list].length + (f[`${list}_left_out`]?.rows ?? 0), one, several);
  say(`${f.name}: ${known("callers", "caller", "callers")}, ${known("callees", "callee", "callees")}.`);
}
