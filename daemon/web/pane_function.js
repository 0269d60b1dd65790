// One function: callers on the left, callees on the right, exact calls on every arc. A cycle is one node that opens in place.
import * as api from "./api.js";
import { copy, el, replace } from "./dom.js";
import * as format from "./format.js";
import { href, question } from "./state.js";

function side(title, rows, state, own, total) {
  const most = Math.max(1e-30, ...rows.map((r) => r.self + r.children));
  const line = (r) => {
    const seconds = r.self + r.children;
    const of = r.inside ? "inside the cycle: carries no time" : r.of_calls ? `${format.exact(r, "calls")} of ${format.exact(r, "of_calls")} calls that share its time` : "";
    return el(
      "tr",
      {},
      el("td", {}, r.name === "<spontaneous>" ? "<spontaneous>" : el("a", { href: own(r), title: r.name }, r.name), r.cycle ? el("span", { class: "chip" }, `cycle ${r.cycle}`) : null, r.static ? el("span", { class: "chip", title: "found in the machine code, never observed" }, "static") : null),
      el("td", { class: "n", title: of }, format.exact(r, "calls")),
      el("td", { class: "n" }, r.inside ? el("span", { title: of }, "—") : el("span", { class: "share", style: { "--share": `${(100 * seconds) / most}%` } }, format.seconds(seconds))),
      el("td", { class: "n" }, r.inside || !(total > 0) ? "" : format.percent((100 * seconds) / total)),
    );
  };
  return el(
    "table",
    { class: "arcs" },
    el("caption", {}, title),
    el("thead", {}, el("tr", {}, [["Function"], ["Calls", 1], ["Time", 1], ["of report", 1]].map(([t, n]) => el("th", { scope: "col", class: n ? "n" : "" }, t)))),
    el("tbody", {}, rows.length ? rows.map(line) : el("tr", {}, el("td", { colSpan: 4 }, "none"))),
  );
}

/** Where a row leads: indexes are those of the whole report, which the table knows. What was not called in the window has none. */
function resolver(state, flat) {
  const places = new Map(Array.from(flat.columns.index, (index, i) => [index, i]));
  return (row) => {
    const i = places.get(row.index);
    return i === undefined ? href(state, { fn: "", of: "", q: row.name }) : href(state, { fn: flat.columns.address[i], of: flat.id(i) === state.build ? "" : flat.id(i) });
  };
}

function cyclePart(cycle, own, total) {
  return el(
    "details",
    { class: "cycle" },
    el("summary", {}, `Cycle ${cycle.number}: ${format.seconds(cycle.self + cycle.children)}, ${format.percent(cycle.percent)}, called ${format.exact(cycle, "calls_outside")} times from outside, ${format.exact(cycle, "calls_inside")} times inside`),
    side("Members, with their calls from inside", cycle.members.map((m) => ({ ...m, inside: false })), null, own, total),
    side("Callers of the cycle", cycle.callers, null, own, total),
    side("Called by the cycle", cycle.callees, null, own, total),
  );
}

export async function functionPane(pane, state, flat, signal) {
  const params = { ...question(state), build_id: state.of || undefined };
  pane.hidden = false;
  replace(pane, el("p", { role: "status" }, "Loading…"));
  let answer;
  try {
    answer = await api.json(api.path(state.build, `/functions/${encodeURIComponent(state.fn)}`, params), signal);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    replace(pane, el("p", { class: "warning" }, error.message), el("p", {}, el("a", { href: href(state, { fn: "", of: "" }) }, "Close")));
    return;
  }
  const f = answer.functions[0];
  const total = answer.totals.seconds;
  const own = resolver(state, flat);
  const calls = format.exact(f, "calls") + (f.self_calls ? ` + ${format.exact(f, "self_calls")} recursive` : "");
  const facts = [
    ["Self", `${format.seconds(f.self)} (${format.percent(total > 0 ? (100 * f.self) / total : 0)})`],
    ["Total", `${format.seconds(f.total)} (${format.percent(f.percent)})`],
    ["Calls", calls],
    ["Per call", f.calls ? `${format.seconds(f.self / f.calls)} self, ${format.seconds(f.total / f.calls)} total` : "never called in this window"],
    ["Address", `${f.address} in ${format.brief(f.build_id)}`],
    f.file ? ["File", f.file] : null,
    f.aliases.length ? ["Also", f.aliases.join(", ")] : null,
    f.raw_name !== f.name ? ["Symbol", f.raw_name] : null,
  ].filter(Boolean);
  const callers = f.spontaneous ? [{ name: "<spontaneous>", calls: 0, of_calls: 0, self: f.self, children: f.children }, ...f.callers] : [...f.callers].reverse();
  replace(
    pane,
    el("div", { class: "bar" }, el("h2", { class: "function" }, f.name), el("button", { type: "button", onclick: () => copy(f.name, "Name") }, "Copy name"), el("a", { href: href(state, { fn: "", of: "" }), id: "pane-close" }, "Close")),
    el("dl", { class: "facts" }, facts.map(([k, v]) => [el("dt", {}, k), el("dd", {}, v)])),
    answer.cycles.filter((c) => c.number === f.cycle).map((c) => cyclePart(c, own, total)),
    el("div", { class: "butterfly" }, side("Callers", [...callers, ...f.static_callers], state, own, total), side("Callees", [...f.callees, ...f.static_callees], state, own, total)),
    el("p", { class: "hint" }, "Calls are exact. A callee's time is divided among its callers by their calls, as gprof does it."),
  );
}
