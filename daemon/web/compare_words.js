// The wording of a comparison: metrics, verdicts, intervals, and how much data is missing.
import * as format from "./format.js";

/** key of the interface; title; hint; what more and less of it are called; how its values read; "common": of all
 *  functions. */
export const METRICS = [
  {
    key: "time-per-call",
    title: "Time per call",
    hint: "self time divided by calls",
    more: "slower",
    less: "faster",
    timed: true,
    unit: "seconds",
    common: "time per call",
  },
  {
    key: "self",
    title: "Share, self",
    hint: "self time as a share of all CPU time of its side",
    more: "larger share",
    less: "smaller share",
    timed: true,
    unit: "share",
  },
  {
    key: "total",
    title: "Share, with callees",
    hint: "time of the function and its callees as a share of all CPU time of its side",
    more: "larger share",
    less: "smaller share",
    timed: true,
    unit: "share",
  },
  {
    key: "calls-per-process",
    title: "Calls per process",
    hint: "calls divided by processes",
    more: "called more often",
    less: "called less often",
    unit: "number",
    common: "calls per process",
  },
  {
    key: "calls-per-parent",
    title: "Calls per caller call",
    hint: "calls of the function from one caller, divided by the calls of that caller",
    more: "called more often",
    less: "called less often",
    unit: "number",
  },
];

const LEAST_TICKS = 150; // of a function on each side if nothing had changed, for a test of its time
const LEAST_GROUPS = 12;

/** What is not known of a function that one side alone has. */
export const ALONE = { change: null, low: null, high: null, p: null, q: null, visible: null, data_needed: null };

/** A value of a side. */
export function value(metric, x) {
  if (x === null || x === undefined) return "–";
  if (metric.timed && x === 0) return "no ticks";
  if (metric.unit === "share") return format.percent(100 * x, 200);
  if (metric.unit === "seconds") return format.seconds(x, 200);
  return x >= 1000 ? format.count(Math.round(x)) : String(Number(x.toPrecision(4)));
}

/** Decimals of a percentage that is known to within about half: more would claim what is not known. */
const decimals = (half) => (half >= 0.01 ? 0 : half >= 0.001 ? 1 : 2);

/** "+30 %", "−4.1 %"; a factor where a percentage is hard to read. */
export function change(x, half = 0) {
  if (x === null) return "";
  if (x === 0) return "0 %";
  if (x >= 9) return `× ${Number((x + 1).toPrecision(3))}`;
  const digits = half > 0 ? decimals(half) : Math.abs(x) < 0.1 ? 2 : 1;
  const text = `${Math.abs(100 * x).toFixed(digits)} %`;
  return Number.parseFloat(text) === 0 ? text : `${x > 0 ? "+" : "−"}${text}`;
}
const halfOf = (row) => (row.high - row.low) / 2;
export const changeOf = (row) => (row.change === null ? "" : change(row.change, halfOf(row)));
export function interval(row) {
  if (row.change === null || row.low === null || row.low === row.high) return "";
  return `${change(row.low, halfOf(row))} to ${change(row.high, halfOf(row))}`;
}

/** "40 min", "8 h", "5 days". */
export function hours(h) {
  if (h < 1) return `${Math.max(1, Math.round(60 * h))} min`;
  return h < 48 ? `${Number(h.toPrecision(2))} h` : `${Math.ceil(h / 24)} days`;
}

const spanOf = (side) => (Date.parse(side.last) - Date.parse(side.first)) / 3600e3;

/** For that factor of data: how much longer data must come in at the speed of B. */
function more(times, diff) {
  const span = spanOf(diff.b);
  if (!(span > 0)) return `${Number(times.toPrecision(2))} × the data`;
  return `${hours((times - 1) * span)} more`;
}

/** Ticks that the side with less data would have if nothing had changed. */
function leastTicks(row, metric, diff) {
  const share = metric.unit === "share";
  const ticks = share ? row.a * diff.a.ticks + row.b * diff.b.ticks : row.ticks_a + row.ticks_b;
  const a = share ? diff.a.ticks : row.a > 0 ? row.ticks_a / row.a : 0;
  const b = share ? diff.b.ticks : row.b > 0 ? row.ticks_b / row.b : 0;
  return a > 0 && b > 0 ? (ticks * Math.min(a, b)) / (a + b) : 0;
}

/** What is missing before a planned change can be seen; "" if nothing is. */
export function plan(row, metric, diff) {
  if (row.verdict === "too-few") {
    const ticks = leastTicks(row, metric, diff);
    if (Math.min(diff.a.groups, diff.b.groups) < LEAST_GROUPS) return "more processes";
    if (!metric.timed || ticks >= LEAST_TICKS) return "more processes that call it";
    return ticks > 0 ? more(LEAST_TICKS / ticks, diff) : "ticks on both sides";
  }
  if (row.verdict !== "not-significant" || !(row.data_needed > 1)) return "";
  return more(row.data_needed, diff);
}

/** What is known of a function on the side where it has no tick and no call. */
function lacking({ idle, inlined }, side) {
  const has = idle ? `${side} has the function, too.` : "";
  const within = inlined ? `${side} has inlined it: its time there is in its callers.` : "";
  return [`No tick and no call of it in ${side}.`, has, within].filter(Boolean).join(" ");
}

/** A function without a tick and a call on one side may well be there. */
const aloneText = ({ idle, inlined }, here, other) =>
  idle ? `not seen in ${other}` : inlined ? `inlined in ${other}` : `only in ${here}`;

/** Where calls are not counted, a function without a tick may have run. */
function alone(row, here, other, look) {
  const chance = row.idle && !row.calls ? { kind: "same", sign: "≈" } : look;
  return { ...chance, text: aloneText(row, here, other), about: lacking(row, other) };
}

/** "3 functions only in A, 1 not seen in B": of what only one side has. */
export function aloneCounts(diff) {
  const counts = new Map();
  for (const [rows, here, other] of [
    [diff.only_in_a.rows, "A", "B"],
    [diff.only_in_b.rows, "B", "A"],
  ])
    for (const row of rows) {
      const text = aloneText(row, here, other);
      counts.set(text, (counts.get(text) ?? 0) + 1);
    }
  const first = (n) => format.several(n, "function", "functions");
  return [...counts].map(([text, n], i) => `${i ? format.count(n) : first(n)} ${text}`).join(", ");
}

/** The verdict of a row: a sign that does not need colour, words, and what they mean. */
export function verdict(row, metric, diff) {
  const up = row.change > 0;
  const direction = up ? metric.more : metric.less;
  const sign = up ? "▲" : "▼";
  const kind = up ? "more" : "less";
  const chance = row.q === null ? "" : `q = ${row.q < 0.0001 ? "< 0.0001" : Number(row.q.toPrecision(2))}`;
  const planned = format.percent(100 * diff.planned, 200);
  const needs = plan(row, metric, diff);
  const missing = needs ? ` An increase by ${planned} can be told after ${needs}.` : "";
  return {
    changed: () => ({ kind, sign, text: direction, about: `Real: ${chance}, the rate of false findings up to here.` }),
    "constant-changed": () => ({
      kind,
      sign,
      text: `${direction}, certain`,
      about: "The same number in every group of processes of a side, and another one on the other side.",
    }),
    "only-in-a": () => alone(row, "A", "B", { kind: "less", sign: "−" }),
    "only-in-b": () => alone(row, "B", "A", { kind: "more", sign: "+" }),
    "not-significant": () => ({
      kind: "same",
      sign: "≈",
      text: row.data_needed > 1 ? "cannot tell yet" : "no change",
      about:
        `May be chance (p = ${Number((row.p ?? 1).toPrecision(2))}). ` +
        `An increase by ${change(row.visible ?? 0)} would probably have been seen.${missing}`,
    }),
    constant: () => ({ kind: "same", sign: "=", text: "exactly as before", about: "The same number in every group." }),
    "too-few": () => ({
      kind: "same",
      sign: "?",
      text: "cannot tell yet",
      about:
        `A test needs ${LEAST_TICKS} ticks of the function on each side, if nothing had changed, and ticks of it in ` +
        `${LEAST_GROUPS} groups of processes of each side. ` +
        `Needed: ${needs}.`,
    }),
  }[row.verdict]();
}

/** The answer in one sentence. */
export function headline(table, metric) {
  const rows = table.rows.filter((r) => /changed$/.test(r.verdict));
  const [up, down] = [rows.filter((r) => r.change > 0), rows.filter((r) => r.change < 0)];
  const list = (all, word) => {
    if (!all.length) return "";
    const worst = all.reduce((a, b) => (Math.abs(b.change) > Math.abs(a.change) ? b : a));
    const named = `${worst.function} ${changeOf(worst)}`;
    const [one, many] = metric.unit === "share" ? ["has a", "have a"] : ["is", "are"];
    return all.length === 1
      ? `1 function ${one} ${word}: ${named}`
      : `${format.count(all.length)} ${many} ${word}, most ${named}`;
  };
  const said = [list(up, metric.more), list(down, metric.less)].filter(Boolean);
  const { counts } = table;
  const open = (r) => r.verdict === "not-significant" && r.data_needed > 1;
  const unknown = (counts["too-few"] ?? 0) + table.rows.filter(open).length;
  const same = (counts["not-significant"] ?? 0) + (counts.constant ?? 0) + (counts["too-few"] ?? 0) - unknown;
  const rest = [
    same ? `${format.count(same)} did not change` : "",
    unknown ? `${format.count(unknown)} cannot be told yet` : "",
  ].filter(Boolean);
  return [
    said.length ? `${said.join("; ")}.` : "No function changed measurably.",
    rest.length ? `${rest.join(", ")}.` : "",
  ];
}

/** Why nothing can be told, where a side has too few processes for any verdict. */
export function fewGroups(table, diff) {
  const [a, b] = [diff.a.groups, diff.b.groups];
  if (!(table.counts["too-few"] > 0) || Math.min(a, b) >= LEAST_GROUPS) return "";
  const needed = `a verdict needs ${LEAST_GROUPS} groups of processes on each side`;
  return ` Too few processes: ${needed}; A has ${a}, B has ${b}.`;
}

/** What all functions have in common; rows do not contain it. */
export const common = (table, metric) =>
  table.common
    ? `All functions together: ${metric.common} ${changeOf(table.common)} (${interval(table.common)}). ` +
      "The rows show what is beyond that."
    : "";
