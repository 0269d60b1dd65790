// The callers or the callees of a function, or the members of a cycle, as a table.
import { button, el, replace } from "./dom.js";
import * as format from "./format.js";
import { SAMPLED } from "./origin.js";
import { bar, differs } from "./report_columns.js";
import { NARROW, plain } from "./table.js";

const MOST = 200; // arcs that are drawn at once

/** On a phone without arguments. */
const named = (r) => (innerWidth < NARROW ? format.called(r.name) : (r.short_name ?? r.name));

function nameCell(r, look) {
  const chip = (text, title) => el("span.chip", { title }, text);
  const name = r.name === "<spontaneous>" ? r.name : el("a", { ...look.own(r), title: r.name }, named(r));
  const found = r.static ? chip("static", "found in the machine code, never observed") : null;
  return [name, r.cycle ? chip(`cycle ${r.cycle}`) : null, found];
}

/** The time of an arc, as it was chosen. */
const timeOf = (r, look) => (look.measured ? r.measured_total : undefined) ?? r.self_seconds + r.children_seconds;

const byCalls = (r) => r.self_seconds + r.children_seconds;

/** Where a measured time comes from. */
function measured(r, look) {
  const range = look.amount.between(r.measured_low, r.measured_high);
  const calls = r.measured_differs ? `; by numbers of calls ${look.amount(byCalls(r))}` : "";
  return `95 %: ${range}, ${format.several(r.measured_samples, "stack", "stacks")}${calls}`;
}

const callsOf = (r, look) => (r.jumped ? "^" : "") + look.mark + format.exact(r, "calls");

/** What the numbers of an arc mean. */
function meaning(r) {
  if (r.jumped) return JUMPED;
  if (r.inside) return "inside the cycle: carries no time";
  if (!r.of_calls) return "";
  return `${format.exact(r, "calls")} of ${format.exact(r, "of_calls")} calls that share its time`;
}

/** The cells of an arc. per(row): calls in each call of the caller; without it there is no such column. */
function cells(r, look, per, most) {
  const seconds = timeOf(r, look);
  const each = per?.(r);
  const known = look.measured && r.measured_total !== undefined;
  const told = (content, title) => el("span", { title }, content);
  const calls = r.calls === 0 && r.measured_samples > 0 ? told("–", UNCOUNTED) : undefined;
  const differing = known && r.measured_differs ? differs(byCalls(r), look.amount) : null;
  const share = bar(
    el("span", look.amount(seconds), differing),
    (100 * seconds) / most,
    known ? measured(r, look) : null,
  );
  const percent = format.share((100 * seconds) / (look.total || 1), look.ticks);
  const last = look.measured
    ? r.measured_per_call > 0 && look.amount(r.measured_per_call, seconds)
    : !r.inside && look.total > 0 && percent;
  return [
    nameCell(r, look),
    calls ?? told(callsOf(r, look), look.mark ? SAMPLED : meaning(r)),
    ...(per ? [each > 0 && Number.isFinite(each) && !look.mark ? format.ratio(each) : ""] : []),
    r.inside ? told("—", meaning(r)) : share,
    last || "",
  ];
}

/** left: what the answer leaves out of the list; look.all asks for it. */
export function arcs(title, rows, look, left, per) {
  const times = rows.map((r) => timeOf(r, look));
  const most = format.largest(times, 1e-30);
  const columns = [
    ["Function"],
    [`${look.mark}Calls`, 1],
    ...(per ? [["per call", 1, PER]] : []),
    [look.title, 1],
    look.measured ? ["time/call", 1, EACH] : ["share", 1],
  ];
  const box = el("div.arcs-box");
  const show = (shown) => {
    const table = plain(title, columns, shown.map((r) => cells(r, look, per, most)));
    table.className = look.measured ? "arcs timed" : "arcs";
    const wide = (content) => table.tBodies[0].append(el("tr", el("td", { colSpan: columns.length }, content)));
    const rest = () => {
      show(rows);
      box.querySelectorAll("tbody a")[MOST]?.focus();
    };
    if (!rows.length) wide("none");
    if (rows.length > shown.length) wide(button(`Show ${format.count(rows.length - shown.length)} others`, rest));
    if (left) {
      const others = `Show ${format.several(left.rows, "other", "others")}`;
      const calls = look.mark + format.many(left, "calls", "call", "calls");
      wide(button(`${others}: ${calls}, ${look.amount(left.seconds)}`, look.all));
    }
    replace(box, table);
  };
  show(rows.slice(0, MOST));
  return box;
}

const EACH = "measured time of one call along this arc, with all that it calls";
const UNCOUNTED = "seen in stacks; no call was counted";
const JUMPED =
  "the callee is also entered by jumps at the end of functions: some of these calls may be those of a function that " +
  "this one called";
const PER = "calls of the callee in each call of the caller";
