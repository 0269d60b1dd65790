// The wording of a comparison: metrics, verdicts, intervals, and how much data is missing. The answer and the words of
// a row are the daemon's.
import * as format from "./format.js";

/** key of the interface; title; hint; how its values read; "common": of all functions. The first one that the daemon
 *  could compute leads. */
export const METRICS = [
  { key: "self", title: "Share, self", hint: "self time as a share of all CPU time of its side", unit: "share" },
  {
    key: "time-per-call",
    title: "Time per call",
    hint: "self time divided by calls",
    unit: "seconds",
    common: "time per call",
  },
  {
    key: "total",
    title: "Share, with callees",
    hint: "time of the function and its callees as a share of all CPU time of its side",
    unit: "share",
  },
  {
    key: "calls-per-process",
    title: "Calls per process",
    hint: "calls divided by processes",
    unit: "number",
    common: "calls per process",
  },
  {
    key: "calls-per-parent",
    title: "Calls per caller call",
    hint: "calls of the function from one caller, divided by the calls of that caller",
    unit: "number",
  },
];

/** What is compared of all functions together. */
const WHOLE = [
  { key: "time-per-process", title: "CPU time per process", unit: "seconds" },
  { key: "all-calls-per-process", title: "Calls per process", unit: "number" },
];

const LEAST_SAMPLES = 150; // of a function on each side if nothing had changed, for a test of its time
const LEAST_GROUPS = 12; // of 16 random ones: about 20 processes are in so many
export const LEAST_PROCESSES = 20;
const UNCHANGED = new Set(["not-significant", "constant", "too-few"]);

/** A row that changed, perhaps changed, or is on one side only. The others are folded. */
export const changed = (row) => !UNCHANGED.has(row.verdict);

/** A value of a side. */
export function value(metric, x) {
  if (x === null || x === undefined) return "–";
  if (metric.unit !== "number" && x === 0) return "no ticks";
  if (metric.unit === "share") return format.percent(100 * x, 200);
  if (metric.unit === "seconds") return format.seconds(x, 200);
  return x >= 1000 ? format.count(Math.round(x)) : String(Number(x.toPrecision(4)));
}

/** Decimals of a percentage that is known to within about half: more would claim what is not known. */
const decimals = (half) => (half >= 0.01 ? 0 : half >= 0.001 ? 1 : 2);
const signed = (x, text) => (Number.parseFloat(text) === 0 ? text : `${x > 0 ? "+" : "−"}${text}`);

/** "+30 %", "−4.1 %"; a factor where a percentage is hard to read. */
export function change(x, half = 0) {
  if (x === null) return "";
  if (x === 0) return "0 %";
  if (x >= 9) return `× ${Number((x + 1).toPrecision(3))}`;
  const digits = half > 0 ? decimals(half) : Math.abs(x) < 0.1 ? 2 : 1;
  return signed(x, `${Math.abs(100 * x).toFixed(digits)} %`);
}
const halfOf = (row) => (row.high - row.low) / 2;
export const changeOf = (row) => (row.change === null ? "" : change(row.change, halfOf(row)));
export function interval(row) {
  if (row.change === null || row.low === null || row.low === row.high) return "";
  return `${change(row.low, halfOf(row))} to ${change(row.high, halfOf(row))}`;
}

/** "+24 points": of shares. */
export function points(row) {
  const x = 100 * ((row.b ?? 0) - (row.a ?? 0));
  return signed(x, Math.abs(x).toFixed(Math.abs(x) >= 9.95 ? 0 : 1));
}

/** "+0.36 s": the time of a process that a function gained or lost; "" where it is not known. */
export const effect = (row) =>
  (row.seconds_a ?? row.seconds_b ?? null) === null ? Number.NaN : (row.seconds_b ?? 0) - (row.seconds_a ?? 0);
export function effectText(row) {
  const x = effect(row);
  return Number.isNaN(x) ? "–" : x === 0 ? "0 s" : `${x > 0 ? "+" : "−"}${format.seconds(Math.abs(x), 200)}`;
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

/** What is missing before a planned change can be seen, or before there can be a test; "" if nothing is. */
export function plan(row, diff) {
  if (row.needs === "data") return more(row.data_needed, diff);
  if (row.needs === "too-much") return row.p === null ? "far more ticks" : "processes differ too much";
  return row.needs === "processes" ? "more processes" : "";
}

const pOf = (name, x) => `${name} ${x < 0.0001 ? "< 0.0001" : `= ${Number(x.toPrecision(2))}`}`;

/** How sure the words of a row are, and what they mean. */
function about(row, diff, table) {
  const planned = format.percent(100 * diff.planned, 200);
  const needs = plan(row, diff);
  const missing =
    row.needs === "data"
      ? ` A change of ${planned} can be told after ${needs}.`
      : row.needs === "too-much"
        ? ` A change of ${planned} cannot be told: these processes differ too much.`
        : "";
  const [here, other] = row.verdict === "only-in-a" ? ["A", "B"] : ["B", "A"];
  const inlined = other === "A" ? row.inlined_a : row.inlined_b;
  return {
    changed: () =>
      `Real (${pOf("q", row.q)}): of all changes that are at least as certain, at most this share is chance.`,
    "constant-changed": () =>
      "Certain: the number is the same in all groups of processes of a side, but the sides differ.",
    [`only-in-${here.toLowerCase()}`]: () =>
      row.caller !== null
        ? ""
        : `${other} has no tick of it.${inlined ? ` ${other} has inlined it: its time there is in its callers.` : ""}`,
    uncertain: () =>
      row.p === null
        ? `A test needs ticks of it in about ${LEAST_PROCESSES} processes of each side.`
        : `Its interval excludes 0, but 1 in 20 of ${format.several(table.tests, "test", "tests")} does so ` +
          `by chance (${pOf("p", row.p)}, ${pOf("q", row.q)}).${missing}`,
    "not-significant": () =>
      `This may be chance (${pOf("p", row.p ?? 1)}).` +
      (row.visible ? ` A rise of ${change(row.visible).replace("+", "")} or more would very likely show.` : "") +
      missing,
    constant: () => "The same number in every group of processes.",
    "too-few": () =>
      `A test needs ${LEAST_SAMPLES} samples of the function on each side, in about ${LEAST_PROCESSES} processes. ` +
      `Still needed: ${needs}.`,
  }[row.verdict]();
}

/** The verdict of a row: a sign that does not need colour, the daemon's words, and what they mean. */
export function verdict(row, diff, table) {
  const one = { "only-in-a": ["less", "−"], "only-in-b": ["more", "+"] }[row.verdict];
  const sure = /changed$/.test(row.verdict);
  const moved = sure || (row.verdict === "uncertain" && row.p !== null);
  const up = row.change > 0;
  const sign = one?.[1] ?? (moved ? (up ? "▲" : "▼") : ({ constant: "=", "not-significant": "≈" }[row.verdict] ?? "?"));
  const kind = one?.[0] ?? (sure ? (up ? "more" : "less") : "same");
  const certain = row.verdict === "constant-changed" ? ", certain" : "";
  return { kind, sign, text: row.words + certain, about: about(row, diff, table) };
}

/** What each process needs in all: "CPU time per process 2.84 s → 3.32 s, +17 % (+6 % to +29 %): more". */
export function whole(diff) {
  return WHOLE.flatMap((metric) => {
    const table = diff.metrics.find((t) => t.metric === metric.key);
    const [row] = table?.rows ?? [];
    if (!row) return [];
    const { sign, text, kind } = verdict(row, diff, table);
    const by = row.change === null ? "" : `, ${changeOf(row)}${interval(row) ? ` (${interval(row)})` : ""}`;
    return [{ kind, text: `${metric.title} ${value(metric, row.a)} → ${value(metric, row.b)}${by}: ${sign} ${text}` }];
  });
}

/** Why nothing can be told, where a side has too few processes for any verdict. */
export function fewGroups(table, diff) {
  const few = ["A", "B"].filter((side) => diff[side.toLowerCase()].groups < LEAST_GROUPS);
  if (!(table.counts["too-few"] > 0) || few.length === 0) return "";
  return ` Too few processes in ${few.join(" and ")}: a verdict needs about ${LEAST_PROCESSES} on each side.`;
}

/** What all functions have in common; rows do not contain it. */
export const common = (table, metric) =>
  table.common
    ? `All functions together: ${metric.common} ${changeOf(table.common)} (${interval(table.common)}). ` +
      "The rows show what is beyond that."
    : "";
