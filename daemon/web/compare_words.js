// The wording of a comparison: metrics, verdicts, intervals, and how much data is missing.
import * as format from "./format.js";

/** key of the interface; title; hint; what more and less of it are called; how its values read; "common": of all
 *  functions. */
export const METRICS = [
  {
    key: "self",
    title: "Share, self",
    hint: "self time as a share of all CPU time of its side",
    more: "larger share",
    less: "smaller share",
    unit: "share",
  },
  {
    key: "time-per-call",
    title: "Time per call",
    hint: "self time divided by calls",
    more: "slower",
    less: "faster",
    unit: "seconds",
    common: "time per call",
  },
  {
    key: "total",
    title: "Share, with callees",
    hint: "time of the function and its callees as a share of all CPU time of its side",
    more: "larger share",
    less: "smaller share",
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

/** What is compared of all functions together. */
const WHOLE = [
  { key: "time-per-process", title: "CPU time per process", more: "more", less: "less", unit: "seconds" },
  { key: "all-calls-per-process", title: "Calls per process", more: "more", less: "less", unit: "number" },
];

const LEAST_SAMPLES = 150; // of a function on each side if nothing had changed, for a test of its time
const LEAST_GROUPS = 12;

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

/** What is missing before a planned change can be seen, or before there can be a test; "" if nothing is. */
export function plan(row, diff) {
  if (row.needs === "data") return more(row.data_needed, diff);
  if (row.needs === "too-much") return row.p === null ? "far more ticks" : "not with this spread";
  return row.needs === "processes" ? "more processes" : "";
}

/** Functions of one side: without a tick and a call in the other, which may well have them. */
const aloneText = ({ idle, inlined }, here, other) =>
  idle ? `not seen in ${other}` : inlined ? `inlined in ${other}` : here === "B" ? "new in B" : "gone in B";

/** A row of one side: an arc, or a function. */
function alone(row, here, other, look) {
  if (row.caller !== null) return { ...look, text: here === "B" ? "newly called" : "no longer called", about: "" };
  const [there, address] = other === "A" ? [row.a, row.address_a] : [row.b, row.address_b];
  const inlined = other === "A" ? row.inlined_a : row.inlined_b;
  const idle = there !== null;
  const text = idle && address ? `no ticks in ${other}` : aloneText({ idle, inlined }, here, other);
  const within = inlined ? ` ${other} has inlined it: its time there is in its callers.` : "";
  const has = idle ? `${other} has the function, too.` : `${other} has no such function.`;
  return { ...look, text, about: `No tick of it in ${other}. ${has}${within}` };
}

/** [text, rows] of the functions of one side, such as "new in B". */
function aloneRows(diff) {
  const found = new Map();
  for (const [rows, here, other] of [
    [diff.only_in_b.rows, "B", "A"],
    [diff.only_in_a.rows, "A", "B"],
  ])
    for (const row of rows) {
      const text = aloneText(row, here, other);
      found.set(text, [...(found.get(text) ?? []), row]);
    }
  return [...found];
}

/** "1 function is new in B: validate_coupon, 53 % of the CPU time": of what only one side has. */
export function aloneCounts(diff) {
  const first = (n) => `${format.several(n, "function", "functions")} ${n === 1 ? "is" : "are"}`;
  const most = ([row], n) =>
    row.self_share > 0
      ? `: ${n > 1 ? "most " : ""}${row.function}, ${format.percent(100 * row.self_share, 200)} of the CPU time`
      : "";
  return aloneRows(diff).map(([text, rows], i) => {
    const n = rows.length;
    return `${i ? `${format.count(n)} ${n === 1 ? "is" : "are"}` : first(n)} ${text}${most(rows, n)}`;
  });
}

const pOf = (name, x) => `${name} ${x < 0.0001 ? "< 0.0001" : `= ${Number(x.toPrecision(2))}`}`;

/** The verdict of a row of a table: a sign that does not need colour, words, and what they mean. */
export function verdict(row, metric, diff, table) {
  const up = row.change > 0;
  const direction = up ? metric.more : metric.less;
  const sign = up ? "▲" : "▼";
  const kind = up ? "more" : "less";
  const planned = format.percent(100 * diff.planned, 200);
  const needs = plan(row, diff);
  const seen = row.visible ? ` An increase by ${change(row.visible)} would probably have been seen.` : "";
  const missing =
    row.needs === "data"
      ? ` An increase by ${planned} can be told after ${needs}.`
      : row.needs === "too-much"
        ? ` An increase by ${planned} cannot be told: these processes differ too much.`
        : "";
  const lacking = row.a < row.b ? "A" : "B";
  const tests = format.several(table.tests, "test", "tests");
  return {
    changed: () => ({
      kind,
      sign,
      text: direction,
      about: `Real: ${pOf("q", row.q)}, the rate of false findings up to here.`,
    }),
    "constant-changed": () => ({
      kind,
      sign,
      text: `${direction}, certain`,
      about: "The same number in every group of processes of a side, and another one on the other side.",
    }),
    "only-in-a": () => alone(row, "A", "B", { kind: "less", sign: "−" }),
    "only-in-b": () => alone(row, "B", "A", { kind: "more", sign: "+" }),
    uncertain: () =>
      row.p === null
        ? { kind: "same", sign: "?", text: `too few ticks in ${lacking}`, about: "Too few for a test." }
        : {
            kind: "same",
            sign,
            text: `${direction}, or chance`,
            about:
              `${pOf("p", row.p)} alone, but one of ${tests}, of which 1 in 20 looks so by chance: ` +
              `${pOf("q", row.q)}.${missing}`,
          },
    "not-significant": () => ({
      kind: "same",
      sign: "≈",
      text: row.needs === "nothing" ? "no change" : "cannot tell yet",
      about: `May be chance (${pOf("p", row.p ?? 1)}).${seen}${missing}`,
    }),
    constant: () => ({ kind: "same", sign: "=", text: "exactly as before", about: "The same number in every group." }),
    "too-few": () => ({
      kind: "same",
      sign: "?",
      text: "cannot tell yet",
      about:
        `A test needs ${LEAST_SAMPLES} samples of the function on each side, if nothing had changed, and some of it ` +
        `in ${LEAST_GROUPS} groups of processes of each side. ` +
        `Needed: ${needs}.`,
    }),
  }[row.verdict]();
}

/** What each process needs in all: "CPU time per process 2.84 s → 3.32 s, +17 % (+6 % to +29 %): more". */
export function whole(diff) {
  return WHOLE.flatMap((metric) => {
    const table = diff.metrics.find((t) => t.metric === metric.key);
    const [row] = table?.rows ?? [];
    if (!row) return [];
    const { sign, text, kind } = verdict(row, metric, diff, table);
    const by = row.change === null ? "" : `, ${changeOf(row)}${interval(row) ? ` (${interval(row)})` : ""}`;
    return [{ kind, text: `${metric.title} ${value(metric, row.a)} → ${value(metric, row.b)}${by}: ${sign} ${text}` }];
  });
}

/** The answer in one sentence: what is new or gone, then what changed. That nothing changed is said only where no
 *  function is new, gone, or outside its interval. */
export function headline(table, metric, diff) {
  const only = aloneCounts(diff);
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
  const said = [...only, list(up, metric.more), list(down, metric.less)].filter(Boolean);
  const { counts, tests } = table;
  const open = (r) => r.verdict === "not-significant" && r.needs !== "nothing";
  const unknown = counts["too-few"] + table.rows.filter(open).length;
  const same = counts["not-significant"] + counts.constant + counts["too-few"] - unknown;
  const rest = [
    counts.uncertain ? `${format.count(counts.uncertain)} may have changed, or look so by chance` : "",
    same ? `${format.count(same)} did not change` : "",
    unknown ? `${format.count(unknown)} cannot be told yet` : "",
  ].filter(Boolean);
  const nothing = counts.uncertain
    ? `No change is certain after ${format.several(tests, "test", "tests")}.`
    : tests + counts.constant > 0
      ? "No function changed measurably."
      : "No function could be tested.";
  const arcs = (counts["only-in-a"] ?? 0) + (counts["only-in-b"] ?? 0);
  if (!said.length && arcs > 0) said.push(`${format.several(arcs, "row is", "rows are")} of one side only`);
  return [said.length ? `${said.join("; ")}.` : nothing, rest.length ? `${rest.join(", ")}.` : ""];
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
