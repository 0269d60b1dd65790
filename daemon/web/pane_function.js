// One function: callers on the left, callees on the right, calls on every arc. A cycle is one node that opens in place.
import * as api from "./api.js";
import { copy, el, replace, say } from "./dom.js";
import * as format from "./format.js";
import { SAMPLED, sampled } from "./origin.js";
import { another, question, remembersOpen, to } from "./state.js";
import { seriesPart } from "./series.js";

const MOST = 200; // arcs that are asked for, and drawn, at once

/** left: what the answer leaves out of the list; look.all asks for it. */
function side(title, rows, look, own, total, left) {
  const most = Math.max(1e-30, ...rows.map((r) => r.self + r.children));
  const line = (r) => {
    const seconds = r.self + r.children;
    const of = r.inside
      ? "inside the cycle: carries no time"
      : r.of_calls
        ? `${format.exact(r, "calls")} of ${format.exact(r, "of_calls")} calls that share its time`
        : "";
    return el(
      "tr",
      {},
      el(
        "td",
        {},
        r.name === "<spontaneous>" ? "<spontaneous>" : el("a", { ...own(r), title: r.name }, r.short_name ?? r.name),
        r.cycle ? el("span", { class: "chip" }, `cycle ${r.cycle}`) : null,
        r.static ? el("span", { class: "chip", title: "found in the machine code, never observed" }, "static") : null,
      ),
      el("td", { class: "n", title: look.mark ? SAMPLED : of }, look.mark + format.exact(r, "calls")),
      el(
        "td",
        { class: "n" },
        r.inside
          ? el("span", { title: of }, "—")
          : el("span", { class: "share", style: { "--share": `${(100 * seconds) / most}%` } }, look.amount(seconds)),
      ),
      el("td", { class: "n" }, r.inside || !(total > 0) ? "" : format.percent((100 * seconds) / total)),
    );
  };
  const shown = rows.slice(0, MOST).map(line);
  const rest = () => {
    const next = rows.slice(MOST).map(line);
    body.lastElementChild.replaceWith(...next);
    next[0].querySelector("a")?.focus();
  };
  if (rows.length > MOST)
    shown.push(
      el(
        "tr",
        {},
        el(
          "td",
          { colSpan: 4 },
          el("button", { type: "button", onclick: rest }, `Show ${format.count(rows.length - MOST)} others`),
        ),
      ),
    );
  if (left)
    shown.push(
      el(
        "tr",
        {},
        el(
          "td",
          { colSpan: 4 },
          el(
            "button",
            { type: "button", onclick: look.all },
            `Show ${format.several(left.rows, "other", "others")}: ${look.mark}${format.many(left, "calls", "call", "calls")}, ${look.amount(left.seconds)}`,
          ),
        ),
      ),
    );
  const body = el("tbody", {}, rows.length ? shown : el("tr", {}, el("td", { colSpan: 4 }, "none")));
  return el(
    "table",
    { class: "arcs" },
    el("caption", {}, title),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        [["Function"], [`${look.mark}Calls`, 1], [look.title, 1], ["of report", 1]].map(([t, n]) =>
          el("th", { scope: "col", class: n ? "n" : "" }, t),
        ),
      ),
    ),
    body,
  );
}

/** Where a row leads: indexes are those of the whole report, which the table knows. What was not called in the window has none. */
function resolver(state, flat) {
  const places = new Map(Array.from(flat.columns.index, (index, i) => [index, i]));
  return (row) => {
    const i = places.get(row.index);
    return i === undefined
      ? to(state, { fn: "", of: "", q: row.name })
      : to(state, { fn: flat.columns.address[i], of: flat.id(i) === state.build ? "" : flat.id(i) });
  };
}

function cyclePart(cycle, look, own, total, state) {
  const summary = el(
    "summary",
    {},
    `Cycle ${cycle.number}: ${look.amount(cycle.self + cycle.children)}, ${format.percent(cycle.percent)}, called ${look.mark}${format.exact(cycle, "calls_outside")} times from outside, ${look.mark}${format.exact(cycle, "calls_inside")} times inside`,
  );
  return remembersOpen(state, "cycle", el("details", { class: "cycle" }, summary), () => [
    side(
      "Members, with calls from other members",
      cycle.members.map((m) => ({ ...m, inside: false })),
      look,
      own,
      total,
      cycle.members_left_out,
    ),
    side("Callers of the cycle", [...cycle.callers].reverse(), look, own, total, cycle.callers_left_out),
    side("Called by the cycle", cycle.callees, look, own, total, cycle.callees_left_out),
  ]);
}

/** The function in the call graph, with its callers and callees. */
const around = (state) => to(state, { ...another("graph"), focus: state.of ? `${state.fn}@${state.of}` : state.fn });
const heading = (name, state) =>
  el(
    "div",
    { class: "bar" },
    el("h2", { class: "function" }, name),
    el("button", { type: "button", onclick: () => copy(name, "Name") }, "Copy name"),
    el("a", around(state), "In the call graph"),
    el("a", { ...to(state, { fn: "", of: "" }), id: "pane-close" }, "Close"),
  );
const list = (facts) =>
  el(
    "dl",
    { class: "facts" },
    facts.map(([k, v]) => [el("dt", {}, k), el("dd", {}, v)]),
  );

/** What the table knows already is shown while callers and callees are asked for. */
function early(pane, state, flat) {
  const c = flat.columns;
  const i = c.address.findIndex((address, k) => address === state.fn && flat.id(k) === (state.of || state.build));
  if (i < 0 && pane.hasChildNodes()) return;
  const amount = format.amounts(flat.report.totals.dimension, flat.report.totals);
  const mark = sampled(flat.report) ? "~" : "";
  const calls =
    mark +
    format.count(i < 0 ? 0 : c.calls[i]) +
    (Number(c.self_calls[i]) ? ` + ${format.count(c.self_calls[i])} recursive` : "");
  const facts =
    i < 0
      ? []
      : [
          ["Self", format.self(amount, c.self[i], c.self_least?.[i])],
          ["Total", `${amount(c.total[i])} (${format.percent(c.percent[i])})`],
          ["Calls", calls],
        ];
  replace(
    pane,
    heading(i < 0 ? state.fn : c.name[i], state),
    facts.length ? list(facts) : null,
    el("p", { role: "status" }, "Loading…"),
  );
}

export async function functionPane(pane, state, flat, signal, rows = MOST) {
  const params = { ...question(state), build_id: state.of || undefined, rows, names: "short" };
  pane.hidden = false;
  early(pane, state, flat);
  let answer;
  try {
    answer = await api.json(api.path(state.build, `/functions/${encodeURIComponent(state.fn)}`, params), signal);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    replace(
      pane,
      el("p", { class: "warning" }, error.message),
      el("p", {}, el("a", to(state, { fn: "", of: "" }), "Close")),
    );
    return;
  }
  const f = answer.functions[0];
  const total = answer.totals.seconds;
  const own = resolver(state, flat);
  const { dimension } = answer.totals;
  const look = {
    amount: format.amounts(dimension, answer.totals),
    mark: sampled(answer) ? "~" : "",
    title: dimension === "seconds" || dimension === "wall" ? "Time" : dimension,
    all: () => functionPane(pane, state, flat, signal, 0),
  };
  const calls =
    look.mark + format.exact(f, "calls") + (f.self_calls ? ` + ${format.exact(f, "self_calls")} recursive` : "");
  const each = (time) => (time > 0 || look.title !== "Time" ? look.amount(time / f.calls, time) : "unknown");
  const facts = [
    [
      "Self",
      `${format.self(look.amount, f.self, f.self_least)} (${format.percent(total > 0 ? (100 * f.self) / total : 0)}${Number.isFinite(f.self_least) ? `; ${format.selfRange(look.amount, f.self_least, f.self_most)}` : ""})`,
    ],
    ["Total", `${look.amount(f.total)} (${format.percent(f.percent)})`],
    ["Calls", calls],
    look.mark
      ? null
      : [
          "Per call",
          f.calls ? `${each(f.self)} self, ${each(f.total)} total` : "no calls from other functions in this time range",
        ],
    ["Address", `${f.address} in ${format.brief(f.build_id)}`],
    f.file ? ["File", f.file] : null,
    f.aliases.length ? ["Also", f.aliases.join(", ")] : null,
    f.raw_name !== f.name ? ["Symbol", f.raw_name] : null,
  ].filter(Boolean);
  const callers = f.spontaneous
    ? [{ name: "<spontaneous>", calls: 0, of_calls: 0, self: f.self, children: f.children }, ...f.callers]
    : [...f.callers].reverse();
  replace(
    pane,
    heading(f.name, state),
    list(facts),
    answer.cycles.filter((c) => c.number === f.cycle).map((c) => cyclePart(c, look, own, total, state)),
    el(
      "div",
      { class: "butterfly" },
      side("Callers", [...callers, ...f.static_callers], look, own, total, f.callers_left_out),
      side("Callees", [...f.callees, ...f.static_callees], look, own, total, f.callees_left_out),
    ),
    el(
      "p",
      { class: "hint" },
      `Calls are ${look.mark ? SAMPLED : answer.provenance.calls_exact ? "exact" : "counted, but some are missing or ambiguous"}. A callee's time is divided among its callers by their calls, as in gprof.`,
    ),
    seriesPart(state, f, answer, look, signal),
  );
  pane.scrollTop = 0;
  const known = (list) => ({ n: f[list].length + (f[`${list}_left_out`]?.rows ?? 0) });
  say(
    `${f.name}: ${format.many(known("callers"), "n", "caller", "callers")}, ${format.many(known("callees"), "n", "callee", "callees")}.`,
  );
}
