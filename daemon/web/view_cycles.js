// Cycles: which is hottest, which functions are in it, which calls hold it together, and which to remove to break it.
import * as api from "./api.js";
import { el, replace } from "./dom.js";
import * as format from "./format.js";
import { another, question, remembersOpen, to } from "./state.js";
import { NARROW, plain } from "./table.js";
import { bar, fitting } from "./report_columns.js";

const ARCS_MOST = 200; // arcs and members of each cycle
const CYCLES_MOST = 50;
const BREAK_MOST = 10; // that are named above the members

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

const calls = (row) => format.exact(row, "calls");

/** The arcs without which there is no cycle, as one sentence. */
function breaking(cycle, state) {
  const named = cycle.break.slice(0, BREAK_MOST);
  const others = cycle.break_count - named.length;
  const arcs = named.map((arc, i) => [
    i ? (i === named.length - 1 && !others ? " and " : ", ") : "",
    el("span.arc", member(cycle, arc.caller, state), " → ", member(cycle, arc.callee, state)),
    ` (${format.many(arc, "calls", "call", "calls")})`,
  ]);
  const what = cycle.break_count === 1 ? "this call" : `these ${format.count(cycle.break_count)} calls`;
  const end = others ? ` and ${format.count(others)} more.` : ".";
  return el("p", el("strong", "To break it, "), `remove ${what}: `, arcs, end);
}

function members(cycle, state, amount) {
  const rows = [...cycle.members].sort((a, b) => b.self_seconds - a.self_seconds);
  const line = (m) => [
    member(cycle, m.name, state),
    amount(m.self_seconds),
    format.exact(m, "calls_outside"),
    format.exact(m, "calls_inside"),
  ];
  const slim = innerWidth < NARROW;
  const from = slim ? ["From outside", "From members"] : ["Calls from outside", "Calls from members"];
  const columns = [["Member"], ["Self", 1], ...from.map((title) => [title, 1])];
  const region = { class: "scroll", tabIndex: 0, role: "region", "aria-label": `Members of cycle ${cycle.number}` };
  const title = el("span.unseen", format.several(cycle.member_count, "member", "members"));
  const table = el("div", region, plain(title, columns, rows.map(line)));
  return el("div.picture-table", table, cut(rows.length, cycle.member_count));
}

function arcs(cycle, state) {
  const breaks = new Set(cycle.break.map((a) => `${a.caller}\n${a.callee}`));
  const line = (a) => [
    member(cycle, a.caller, state),
    member(cycle, a.callee, state),
    calls(a),
    breaks.has(`${a.caller}\n${a.callee}`) ? "would break it" : "",
  ];
  const columns = [["Caller"], ["Callee"], ["Calls", 1], ["Remove"]];
  const summary = el("summary", `${format.several(cycle.arc_count, "call", "calls")} among members`);
  const region = { class: "scroll", tabIndex: 0, role: "region", "aria-label": `Calls in cycle ${cycle.number}` };
  const make = () => [
    el("div", region, plain("Calls among members", columns, cycle.arcs.map(line))),
    cut(cycle.arcs.length, cycle.arc_count),
  ];
  return remembersOpen(state, `arcs${cycle.number}`, el("details.picture-table", summary), make);
}

const shareOf = ({ percent }, ticks) => (percent > 0 ? `${format.share(percent, ticks)} of the time` : "no ticks");

/** A cycle. heading: its level, "h2" where it is the only one; ticks: of all functions. */
function section(cycle, state, amount, heading, ticks) {
  const of = (field) => format.exact(cycle, field);
  const times = `${amount(cycle.total_seconds)} with callees, ${amount(cycle.self_seconds)} in its members`;
  const counts = `${of("calls_outside")} calls from outside, ${of("calls_inside")} among members`;
  return el(
    "section.one-cycle",
    { "aria-label": `Cycle ${cycle.number}` },
    el(
      "div.bar.compare",
      el(heading, {}, `Cycle ${cycle.number}`),
      el("span.measure", bar(shareOf(cycle, ticks), cycle.percent)),
      el("a", to(state, { ...another("graph"), zoom: String(cycle.number) }), "In the call graph"),
    ),
    breaking(cycle, state),
    members(cycle, state, amount),
    el("p", `${format.several(cycle.member_count, "member", "members")}: ${times}; ${counts}.`),
    arcs(cycle, state),
  );
}

/** How many there are, and which to look at. */
function summary(count, first, ticks) {
  const { members: all, member_count: size, percent } = first;
  const top = all.reduce((a, b) => (b.self_seconds > a.self_seconds ? b : a));
  const others = size > 1 ? ` and ${format.several(size - 1, "other function", "other functions")}` : "";
  const named = `${fitting(format.called(top.name))}${others}`;
  const hottest = `The hottest is cycle ${first.number}, ${shareOf(first, ticks)}: ${named}.`;
  const hot = percent > 0 ? hottest : "No samples fell in any cycle.";
  return el(
    "div.bar.compare",
    el("h2", format.several(count, "cycle", "cycles")),
    innerWidth < NARROW ? null : el("p.answer", el("strong", hot)),
  );
}

const NONE = "No functions of this build call each other in a circle. A function that only calls itself is no cycle.";
const MEASURED = "Times are measured: a stack counts for the cycle if one of its members is in it.";
const DIVIDED = "The time with callees is divided among callers by their numbers of calls, as in gprof.";

export async function draw(main, state, signal) {
  const { since, until, match, scope, dimension } = question(state);
  const url = api.path(state.build, "/cycles", { since, until, match, scope, dimension, limit: ARCS_MOST });
  const answer = await api.json(url, signal);
  const { rows, dimension: sampled } = answer;
  if (rows.length === 0) {
    replace(main, el("div.bar.compare", el("h2", "Cycles")), el("p.empty", NONE));
    return;
  }
  const amount = format.amounts(sampled, answer);
  const several = rows.length > 1;
  replace(
    main,
    several ? summary(answer.count, rows[0], answer.ticks) : null,
    rows.slice(0, CYCLES_MOST).map((c) => section(c, state, amount, several ? "h3" : "h2", answer.ticks)),
    answer.count > CYCLES_MOST
      ? el("p.hint", `Only the ${CYCLES_MOST} hottest of ${format.count(answer.count)} are listed.`)
      : null,
    el("p.hint", answer.time === "measured" ? MEASURED : DIVIDED),
  );
}
