// The callers or the callees of a function, or the members of a cycle, as a table.
import { add, el } from "./dom.js";
import * as format from "./format.js";
import { SAMPLED } from "./origin.js";
import { NARROW } from "./report_columns.js";

const MOST = 200; // arcs that are drawn at once

/** On a phone without arguments. */
const named = (r) => (innerWidth < NARROW ? format.called(r.name) : (r.short_name ?? r.name));

function nameCell(r, look) {
  const chip = (text, title) => el("span", { class: "chip", title }, text);
  const name = r.name === "<spontaneous>" ? r.name : el("a", { ...look.own(r), title: r.name }, named(r));
  return el(
    "td",
    {},
    name,
    r.cycle ? chip(`cycle ${r.cycle}`) : null,
    r.static ? chip("static", "found in the machine code, never observed") : null,
  );
}

/** The time of an arc, as it was chosen. */
const timeOf = (r, look) => (look.measured ? r.measured_total : undefined) ?? r.self_seconds + r.children_seconds;

/** Where a measured time comes from. */
function measured(r, look) {
  const range = look.amount.between(r.measured_low, r.measured_high);
  const calls = r.measured_differs ? `; by numbers of calls ${look.amount(r.self_seconds + r.children_seconds)}` : "";
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

/** per(row): calls in each call of the caller; without it there is no such column. */
function line(r, look, per, most) {
  const seconds = timeOf(r, look);
  const each = per?.(r);
  const known = look.measured && r.measured_total !== undefined;
  const uncounted = r.calls === 0 && r.measured_samples > 0;
  const number = (content, title) => el("td", { class: "n", title }, content);
  const share = el(
    "span",
    {
      class: "share",
      style: { "--share": `${(100 * seconds) / most}%` },
      title: known ? measured(r, look) : null,
    },
    el("span", {}, look.amount(seconds), known && r.measured_differs ? el("span", { class: "differs" }, " ≠") : null),
  );
  const shared = !r.inside && look.total > 0;
  const percent = format.share((100 * seconds) / (look.total || 1), look.ticks);
  return el(
    "tr",
    {},
    nameCell(r, look),
    uncounted ? number("–", UNCOUNTED) : number(callsOf(r, look), look.mark ? SAMPLED : meaning(r)),
    per ? number(each > 0 && Number.isFinite(each) && !look.mark ? format.ratio(each) : "") : null,
    number(r.inside ? el("span", { title: meaning(r) }, "—") : share),
    look.measured
      ? number(r.measured_per_call > 0 ? look.amount(r.measured_per_call, seconds) : "")
      : number(shared ? percent : ""),
  );
}

/** left: what the answer leaves out of the list; look.all asks for it. */
export function arcs(title, rows, look, left, per) {
  const most = format.largest(rows.map((r) => timeOf(r, look)), 1e-30);
  const columns = [
    ["Function"],
    [`${look.mark}Calls`, 1],
    per ? ["per call", 1, PER] : null,
    [look.title, 1],
    look.measured ? ["time/call", 1, EACH] : ["share", 1],
  ];
  const heads = columns.filter(Boolean);
  const draw = (r) => line(r, look, per, most);
  const wide = (...content) => el("tr", {}, el("td", { colSpan: heads.length }, content));
  const shown = rows.slice(0, MOST).map(draw);
  const rest = () => {
    const next = rows.slice(MOST).map(draw);
    body.lastElementChild.remove();
    add(body, next);
    next[0].querySelector("a")?.focus();
  };
  const button = (text, onclick) => wide(el("button", { type: "button", onclick }, text));
  if (rows.length > MOST) shown.push(button(`Show ${format.count(rows.length - MOST)} others`, rest));
  if (left) {
    const others = `Show ${format.several(left.rows, "other", "others")}`;
    const calls = look.mark + format.many(left, "calls", "call", "calls");
    shown.push(button(`${others}: ${calls}, ${look.amount(left.seconds)}`, look.all));
  }
  const body = el("tbody", {}, rows.length ? shown : wide("none"));
  const head = ([text, n, hint]) => el("th", { scope: "col", class: n ? "n" : "", title: hint }, text);
  const table = el(
    "table",
    { class: look.measured ? "arcs timed" : "arcs" },
    el("caption", {}, title),
    el("thead", {}, el("tr", {}, heads.map(head))),
    body,
  );
  return el("div", { class: "arcs-box" }, table);
}

const EACH = "measured time of one call along this arc, with all that it calls";
const UNCOUNTED = "seen in stacks; no call was counted";
const JUMPED =
  "the callee is also entered by jumps at the end of functions: some of these calls may be those of a function that " +
  "this one called";
const PER = "calls of the callee in each call of the caller";
