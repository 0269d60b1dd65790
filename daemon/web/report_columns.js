// The columns of the table of functions: names, times measured or by calls, calls, and times by the values of a label.
import { el } from "./dom.js";
import * as format from "./format.js";
import { lacksTicks, SAMPLED, sampled } from "./origin.js";
import { to } from "./state.js";
import { BESIDE, column, fitted, NARROW, numbers } from "./table.js";

/** A number with a bar beside it. */
export const bar = (text, share, title) =>
  el("span.share", { title, style: { "--share": `${Math.max(0, Math.min(100, share))}%` } }, text);

/** A number below its name, in a list of them: dl.tiles. */
export const tile = ([name, number, more]) => [
  el("dt", name),
  el("dd", number, more ? el("span.hint", ` ${more}`) : null),
];

const [SHORT, HALF] = [20, 30]; // characters of a name on a phone, and in a table with something beside it

/** A name as it fits: where there is little space its end, which tells functions apart. less: characters that a chip
 *  takes; beside: whether something stands beside the table where the window has space for that. */
export function fitting(name, less = 0, beside = false) {
  if (innerWidth < NARROW) return format.clip(name, SHORT - less);
  return beside && innerWidth >= BESIDE ? format.clip(name, HALF - less) : name;
}

/** Whether the times with callees are those of stacks. */
const isMeasured = (report) => report.time === "measured" && Boolean(report.stacks);

/** The time of each function with its callees, as it was chosen. */
const totalsOf = (flat) => (isMeasured(flat.report) ? flat.columns.measured_total : flat.columns.total_seconds);

/** Times of one call, and why they are not known. */
function perCall(flat) {
  const c = flat.columns;
  const timed = ["seconds", "wall"].includes(flat.report.totals.dimension);
  const lacking = timed && lacksTicks(flat.report) ? "not known: calls of much CPU time have no ticks" : "";
  const unknown = sampled(flat.report) ? "not known: calls are sampled" : lacking;
  const known = (times, i) => !unknown && Number(c.calls[i]) > 0 && (times[i] > 0 || !timed); // no call takes no time
  return { unknown, each: (times, i) => (known(times, i) ? times[i] / Number(c.calls[i]) : Number.NaN) };
}

const BY_CALLS =
  "self time and that of callees, which numbers of calls divide among their callers; for a member of a cycle, " +
  "without the other members; a name in brackets does not pass time on to its callers";
const MEASURED = "time of all stacks that the function is in; each stack counts once";

const CHIP = 76; // pixels

/** now(): the present state. */
function nameColumn(flat, now) {
  const c = flat.columns;
  const link = (i) => to(now(), { fn: c.address[i], of: flat.id(i) === flat.report.build_id ? "" : flat.id(i) });
  const chip = (cycle) => {
    const about = `member of cycle ${cycle}`;
    const text = innerWidth < NARROW ? `↻${cycle}` : `cycle ${cycle}`;
    return el("span.chip", { role: "img", title: about, "aria-label": about }, text);
  };
  const cell = (i, space) => {
    const name = fitted(c.short_name[i] ?? c.name[i], space - (c.cycle[i] ? CHIP : 0));
    return [el("a", { ...link(i), tabIndex: -1, title: c.name[i] }, name), c.cycle[i] ? chip(c.cycle[i]) : null];
  };
  return column("name", "Function", { value: (i) => c.name[i], cell });
}

/** The time by numbers of calls, where a measured one excludes it. */
export const differs = (byCalls, amount) => el("span.differs", `, by calls ${amount(byCalls)}`);

/** The interval of a measured total, and the total by calls where it is outside of it. */
function rangeColumns(flat, amount) {
  const c = flat.columns;
  const cell = (i) => {
    if (!c.measured_samples[i]) return "";
    const about = `${format.several(c.measured_samples[i], "stack", "stacks")}; by calls ${amount(c.total_seconds[i])}`;
    return el("span", { title: about }, amount.between(c.measured_low[i], c.measured_high[i]));
  };
  const range = { cell, value: (i) => c.measured_high[i] - c.measured_low[i], width: 11.2, rare: 1 };
  const other = (i) => (c.measured_differs[i] ? el("span.differs", amount(c.total_seconds[i])) : "");
  const byCalls = { cell: other, value: (i) => (c.measured_differs[i] ? c.total_seconds[i] : Number.NaN), rare: 2 };
  const hint = "contains the true total in 95 of 100 cases";
  const outside = "the total by numbers of calls, where it is outside the interval";
  return [
    numbers("range", "Total, 95 % interval", { ...range, hint }),
    ...(c.measured_differs?.some(Boolean) ? [numbers("bycalls", "By calls", { ...byCalls, hint: outside })] : []),
  ];
}

/** A tick without a stack is in no measured total: it is at least the self time, and reads so. */
export const totalText = (amount, total, self) => (total < self * (1 - 1e-9) ? `≥ ${amount(self)}` : amount(total));

function timeColumns(flat) {
  const c = flat.columns;
  const { totals } = flat.report;
  const whole = totals.seconds || 1;
  const measured = isMeasured(flat.report);
  const times = totalsOf(flat);
  const amount = format.amounts(totals.dimension, totals);
  const percent = (value) => format.share(value, totals.ticks);
  const own = (i) => (100 * c.self_seconds[i]) / whole;
  const total = (i) => Math.max(times[i], c.self_seconds[i]);
  const share = (i) => (measured ? (100 * total(i)) / whole : c.percent[i]);
  const range = (i) => format.selfRange(amount, c.self_least?.[i], c.self_most?.[i]) || null;
  const self = (i) => bar(format.self(amount, c.self_seconds[i], c.self_least?.[i]), own(i), range(i));
  const both = { width: 9.2, bars: true, slim: 5.7 };
  const shareText = (i) => totalText(() => percent(share(i)), times[i], c.self_seconds[i]);
  const totalCell = (i) => bar(totalText(amount, times[i], c.self_seconds[i]), share(i));
  const spent = { value: (i) => c.self_seconds[i] };
  return [
    numbers("self", "Self", { hint: "time in the function itself", ...both, ...spent, cell: self }),
    numbers("selfp", "Self %", { ...spent, cell: (i) => percent(own(i)), rare: 5 }),
    numbers("total", "Total", { hint: measured ? MEASURED : BY_CALLS, ...both, value: total, cell: totalCell }),
    numbers("percent", "Total %", { value: total, cell: shareText }),
    ...(measured ? rangeColumns(flat, amount) : []),
  ];
}

const UNCOUNTED = "seen in stacks; no call was counted";
const count = (c, i) => format.count(c.calls[i]) + (Number(c.self_calls[i]) ? `+${format.count(c.self_calls[i])}` : "");

/** The letters of the longest cell of calls. Few functions call themselves, and texts of all would take 10 ms. */
function widestCount({ calls, self_calls: own }) {
  const letters = (n) => Math.floor((4 * String(n).length - 1) / 3); // with the marks of thousands
  let most = 0;
  let both = 0;
  calls.forEach((n, i) => {
    if (Number(own[i])) both = Math.max(both, letters(n) + 1 + letters(own[i]));
    else most = Math.max(most, Number(n));
  });
  return Math.max(letters(most), both);
}

function callColumns(flat) {
  const c = flat.columns;
  const { totals } = flat.report;
  const amount = format.amounts(totals.dimension, totals);
  const mark = sampled(flat.report) ? "~" : "";
  const { unknown, each } = perCall(flat);
  const sum = (i) => Number(c.calls[i]) + Number(c.self_calls[i]);
  const calls = (i) => {
    if (sum(i) === 0 && c.measured_samples?.[i] > 0) return el("span", { title: UNCOUNTED }, "–");
    return mark && sum(i) ? el("span", { title: SAMPLED }, mark + count(c, i)) : count(c, i);
  };
  const callers = (i) => (mark ? 0 : Number(c.caller_calls[i]));
  const perCaller = (i) => (callers(i) > 0 ? Number(c.calls[i]) / callers(i) : Number.NaN);
  const widest = widestCount(c);
  const time = (times) => ({ value: (i) => each(times, i), cell: (i) => amount(each(times, i), times[i]) });
  const counted = { hint: mark ? SAMPLED : "calls from other functions + recursive calls", cell: calls };
  const width = Math.max(6.2, 0.58 * widest + 2.5);
  const perCallerHint = mark ? "not known: calls are sampled" : "calls in each call of a function that calls it";
  const ratio = { value: perCaller, cell: (i) => format.ratio(perCaller(i)), hint: perCallerHint };
  return [
    numbers("calls", `${mark}Calls`, { ...counted, width, value: (i) => Number(c.calls[i]) }),
    numbers("percaller", "Calls/caller", { ...ratio, width: 7.2, rare: 9 }),
    ...(unknown
      ? []
      : [
          numbers("percall", "Self/call", { ...time(c.self_seconds), rare: 3 }),
          numbers("totalcall", "Total/call", { ...time(totalsOf(flat)), rare: 4 }),
        ]),
  ];
}

/** For each value of a label, the share of its own time that a function has itself. */
function partColumns(flat, parts) {
  const c = flat.columns;
  return parts.map(({ value, flat: part }, k) => {
    const places = new Map(part.columns.address.map((address, i) => [`${address}@${part.id(i)}`, i]));
    const at = c.address.map((address, i) => places.get(`${address}@${flat.id(i)}`));
    const { totals } = part.report;
    const amount = format.amounts(totals.dimension, totals);
    const whole = amount(totals.seconds);
    const share = (i) => (at[i] === undefined ? 0 : (100 * part.columns.self_seconds[at[i]]) / (totals.seconds || 1));
    const about = (i) =>
      at[i] === undefined
        ? "no time and no call"
        : `self ${amount(part.columns.self_seconds[at[i]])} of ${whole}, ` +
          format.several(part.columns.calls[at[i]], "call", "calls");
    const cell = (i) => el("span", { title: about(i) }, format.share(share(i), totals.ticks));
    const hint = `self time of ${value || "uploads without this label"}, in percent of its own ${whole}`;
    return numbers(`part${k}`, value || "not set", { hint, width: 6.2, value: share, cell });
  });
}

/** now(): the present state. parts: [{value, flat}] of the values of a label. */
export function columnsOf(flat, now, parts = []) {
  const { build } = flat.columns;
  const name = (i, other) => format.base(flat.report.builds[build[i]]?.name ?? other);
  const rare = build.some((b) => b !== build[0]) ? 1 : 6; // one value says little
  const where = { value: (i) => name(i, ""), cell: (i) => name(i, "[outside]"), rare };
  const all = [nameColumn(flat, now), ...timeColumns(flat), ...partColumns(flat, parts), ...callColumns(flat)];
  return [...all, column("build", "In", where)];
}
