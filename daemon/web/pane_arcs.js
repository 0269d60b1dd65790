// The callers or the callees of a function, or the members of a cycle, as a table.
import { el } from "./dom.js";
import * as format from "./format.js";
import { SAMPLED } from "./origin.js";

export const MOST = 200; // arcs that are asked for, and drawn, at once

/** Calls in each call: exact where they divide, else two places. */
const ratio = (n) => (Number.isInteger(n) ? format.count(n) : format.rate(n));

function nameCell(r, look) {
  const chip = (text, title) => el("span", { class: "chip", title }, text);
  const name = r.name === "<spontaneous>" ? r.name : el("a", { ...look.own(r), title: r.name }, r.short_name ?? r.name);
  return el(
    "td",
    {},
    name,
    r.cycle ? chip(`cycle ${r.cycle}`) : null,
    r.static ? chip("static", "found in the machine code, never observed") : null,
  );
}

/** What the numbers of an arc mean. */
function meaning(r) {
  if (r.inside) return "inside the cycle: carries no time";
  if (!r.of_calls) return "";
  return `${format.exact(r, "calls")} of ${format.exact(r, "of_calls")} calls that share its time`;
}

/** per(row): calls in each call of the caller; without it there is no such column. */
function line(r, look, per, most) {
  const seconds = r.self + r.children;
  const each = per?.(r);
  const number = (content, title) => el("td", { class: "n", title }, content);
  const share = el(
    "span",
    { class: "share", style: { "--share": `${(100 * seconds) / most}%` } },
    look.amount(seconds),
  );
  const known = !r.inside && look.total > 0;
  return el(
    "tr",
    {},
    nameCell(r, look),
    number(look.mark + format.exact(r, "calls"), look.mark ? SAMPLED : meaning(r)),
    per ? number(each > 0 && Number.isFinite(each) && !look.mark ? ratio(each) : "") : null,
    number(r.inside ? el("span", { title: meaning(r) }, "—") : share),
    number(known && seconds > 0 ? format.percent((100 * seconds) / look.total, look.ticks) : known ? "0 %" : ""),
  );
}

/** left: what the answer leaves out of the list; look.all asks for it. */
export function arcs(title, rows, look, left, per) {
  const most = Math.max(1e-30, ...rows.map((r) => r.self + r.children));
  const columns = [
    ["Function"],
    [`${look.mark}Calls`, 1],
    per ? ["per call", 1, PER] : null,
    [look.title, 1],
    ["share", 1],
  ];
  const heads = columns.filter(Boolean);
  const draw = (r) => line(r, look, per, most);
  const wide = (...content) => el("tr", {}, el("td", { colSpan: heads.length }, content));
  const shown = rows.slice(0, MOST).map(draw);
  const rest = () => {
    const next = rows.slice(MOST).map(draw);
    body.lastElementChild.replaceWith(...next);
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
    { class: "arcs" },
    el("caption", {}, title),
    el("thead", {}, el("tr", {}, heads.map(head))),
    body,
  );
  return el("div", { class: "arcs-box" }, table);
}

const PER = "calls of the callee in each call of the caller";
