// The table of functions, and beside it one function between its callers and its callees.
import * as api from "./api.js";
import { el, replace, say } from "./dom.js";
import * as format from "./format.js";
import { functionPane } from "./pane_function.js";
import { menu } from "./menu.js";
import { lacksTicks, SAMPLED, sampled } from "./origin.js";
import { go, note, question, to } from "./state.js";
import { filterField, Table } from "./table.js";

/** The flat report: columns, and how its functions are named in the address bar. */
export async function load(build, params, signal) {
  const report = await api.json(
    api.path(build, "/report", { view: "flat", limit: 0, names: "short", ...params }),
    signal,
  );
  const c = report.columns;
  const id = (i) => (c.build[i] === null ? "" : report.builds[c.build[i]].build_id);
  return { report, columns: c, count: c.index.length, id };
}

/** A number with a bar beside it. */
export const bar = (text, share, title) =>
  el("span", { class: "share", title, style: { "--share": `${Math.max(0, Math.min(100, share))}%` } }, text);

/** Times of one call, and why they are not known. */
function perCall(flat) {
  const c = flat.columns;
  const timed = ["seconds", "wall"].includes(flat.report.totals.dimension);
  const lacking = timed && lacksTicks(flat.report) ? "not known: calls of much CPU time have no ticks" : "";
  const unknown = sampled(flat.report) ? "not known: calls are sampled" : lacking;
  const known = (times, i) => !unknown && Number(c.calls[i]) > 0 && (times[i] > 0 || !timed); // no call takes no time
  return { unknown, each: (times, i) => (known(times, i) ? times[i] / Number(c.calls[i]) : Number.NaN) };
}

const TOTAL =
  "self time and callees; for a member of a cycle, without the other members; a name in brackets does not pass the time " +
  "of what it calls on to its callers";

/** now(): the present state. */
function nameColumn(flat, now) {
  const c = flat.columns;
  const link = (i) => to(now(), { fn: c.address[i], of: flat.id(i) === flat.report.build_id ? "" : flat.id(i) });
  const chip = (cycle) => el("span", { class: "chip", title: `member of cycle ${cycle}` }, `cycle ${cycle}`);
  const cell = (i) => [
    el("a", { ...link(i), tabIndex: -1, title: c.name[i] }, c.short_name[i] ?? c.name[i]),
    c.cycle[i] ? chip(c.cycle[i]) : null,
  ];
  return { key: "name", title: "Function", value: (i) => c.name[i], cell };
}

function timeColumns(flat) {
  const c = flat.columns;
  const { totals } = flat.report;
  const total = totals.seconds || 1;
  const amount = format.amounts(totals.dimension, totals);
  const percent = (value) => (value === 0 ? "0 %" : format.percent(value, totals.ticks));
  const own = (i) => (100 * c.self[i]) / total;
  const range = (i) => format.selfRange(amount, c.self_least?.[i], c.self_most?.[i]) || null;
  const self = (i) => bar(format.self(amount, c.self[i], c.self_least?.[i]), own(i), range(i));
  const both = { numeric: true, width: 9.2, bars: true };
  return [
    { key: "self", title: "Self", hint: "time in the function itself", ...both, value: (i) => c.self[i], cell: self },
    { key: "selfp", title: "Self %", numeric: true, value: (i) => c.self[i], cell: (i) => percent(own(i)) },
    {
      key: "total",
      title: "Total",
      hint: TOTAL,
      ...both,
      value: (i) => c.total[i],
      cell: (i) => bar(amount(c.total[i]), c.percent[i]),
    },
    { key: "percent", title: "Total %", numeric: true, value: (i) => c.percent[i], cell: (i) => percent(c.percent[i]) },
  ];
}

function callColumns(flat) {
  const c = flat.columns;
  const { totals } = flat.report;
  const amount = format.amounts(totals.dimension, totals);
  const mark = sampled(flat.report) ? "~" : "";
  const { unknown, each } = perCall(flat);
  const sum = (i) => Number(c.calls[i]) + Number(c.self_calls[i]);
  const calls = (i) => (mark && sum(i) ? el("span", { title: SAMPLED }, mark + count(c, i)) : count(c, i));
  const most = (column) => column.reduce((a, b) => (Number(b) > Number(a) ? b : a), 0);
  const widest = `${format.count(most(c.calls))}+${format.count(most(c.self_calls))}`.length;
  const time = (times) => ({
    hint: unknown,
    numeric: true,
    value: (i) => each(times, i),
    cell: (i) => amount(each(times, i), times[i]),
  });
  return [
    {
      key: "calls",
      title: `${mark}Calls`,
      hint: mark ? SAMPLED : "calls from other functions + recursive calls",
      width: Math.max(6.2, 0.58 * widest + 2.5),
      numeric: true,
      value: (i) => Number(c.calls[i]),
      cell: calls,
    },
    { key: "percall", title: "Self/call", ...time(c.self) },
    { key: "totalcall", title: "Total/call", ...time(c.total) },
  ];
}

function columnsOf(flat, now) {
  const { build } = flat.columns;
  const name = (i, other) => format.base(flat.report.builds[build[i]]?.name ?? other);
  const where = { key: "build", title: "In", value: (i) => name(i, ""), cell: (i) => name(i, "[outside]") };
  return [nameColumn(flat, now), ...timeColumns(flat), ...callColumns(flat), where];
}

const FEW = ["self", "total", "calls"]; // columns where there is little space
export const NARROW = 700; // pixels

/** The columns that the address names, else those that have space. */
function shownColumns(table, state) {
  if (state.cols) return state.cols.split(",");
  return little(state) ? FEW : table.all.map((c) => c.key);
}

const little = (state) => Boolean(state.fn) || innerWidth < NARROW;

/** Which columns are shown. now(): the present state. */
function columnMenu(table, now) {
  const boxes = table.all.slice(1).map((c) => {
    const change = () => {
      const on = shownColumns(table, now()).filter((key) => key !== c.key && key !== "name");
      const cols = [...(box.checked ? [...on, c.key] : on)].join(",") || "none";
      note(now(), { cols });
      table.show(cols.split(","), little(now()));
    };
    const box = el("input", { id: `col-${c.key}`, type: "checkbox", onchange: change });
    return { box, key: c.key, line: el("p", { class: "check" }, box, el("label", { for: box.id }, c.title)) };
  });
  const node = menu(
    "columns",
    "Columns of the table",
    "Columns",
    boxes.map(({ line }) => line),
  );
  const follow = () => {
    const keys = shownColumns(table, now());
    for (const { box, key } of boxes) box.checked = keys.includes(key);
    table.show(keys, little(now()));
  };
  return { node, follow };
}

const count = (c, i) => format.count(c.calls[i]) + (Number(c.self_calls[i]) ? `+${format.count(c.self_calls[i])}` : "");

/** A pattern, or a plain text where it is none. */
export function matcher(text) {
  if (!text) return undefined;
  try {
    const pattern = new RegExp(text, "i");
    return (name) => pattern.test(name);
  } catch {
    const plain = text.toLowerCase();
    return (name) => name.toLowerCase().includes(plain);
  }
}

let last = { key: "" };

/** The table, and what is asked when it changes. Kept while only the function beside it is another. */
async function build(main, state, signal) {
  const flat = await load(state.build, question(state), signal);
  const kept = {
    state,
    flat,
    pane: el("section", { class: "pane", "aria-label": "Callers and callees", hidden: true, tabIndex: -1 }),
  };
  kept.table = new Table({
    label: "Functions",
    columns: columnsOf(flat, () => kept.state),
    count: flat.count,
    state,
    sort: "self",
    tall: true,
    open: (i) => go({ fn: flat.columns.address[i], of: flat.id(i) === flat.report.build_id ? "" : flat.id(i) }),
  });
  kept.apply = (text) => {
    const wanted = matcher(text);
    kept.table.filter(wanted ? (i) => wanted(flat.columns.name[i]) : undefined);
    let share = 0;
    for (const i of kept.table.rows) share += flat.columns.self[i];
    say(
      `${format.count(kept.table.rows.length)} of ${format.several(flat.count, "function", "functions")}, ${format.percent((100 * share) / (flat.report.totals.seconds || 1))} of self time`,
    );
  };
  kept.filter = filterField(
    () => kept.state,
    "Filter functions",
    "Filter (regex)",
    kept.apply,
    () => kept.table,
  );
  kept.columns = columnMenu(kept.table, () => kept.state);
  const hidden = flat.report.truncated;
  const whole = hidden
    ? el(
        "p",
        { class: "warning" },
        `Not shown: ${format.several(hidden.functions, "function", "functions")} with ${format.amounts(flat.report.totals.dimension, flat.report.totals)(hidden.seconds)}.`,
      )
    : null;
  const body = flat.count ? el("div", { class: "split" }, kept.table.node, kept.pane) : empty(flat.report, state);
  replace(
    main,
    el(
      "div",
      { class: "bar" },
      el("h2", {}, format.several(flat.count, "function", "functions")),
      kept.filter,
      kept.columns.node,
    ),
    whole,
    body,
  );
  kept.apply(state.q);
  return kept;
}

/** Why nothing is shown, and a way to where there is something. */
function empty(report, state) {
  const narrowed = state.since || state.until || state.match.length;
  return el(
    "p",
    { class: "empty" },
    narrowed
      ? "No upload of this build has these labels in this time range. "
      : "No function of this build was called or sampled. ",
    narrowed ? el("a", to(state, { since: "", until: "", match: [] }), "Remove all filters") : null,
  );
}

/** The row of the function that is open is the marked one. */
function markOpen(table, flat, state) {
  const chosen = flat.columns.address.findIndex((a, i) => a === state.fn && flat.id(i) === (state.of || state.build));
  const at = table.rows.indexOf(chosen);
  if (chosen >= 0 && at >= 0 && at !== table.active) table.select(chosen);
}

const BESIDE = 1100; // pixels of a window from which the pane stands beside the table

export async function draw(main, state, signal) {
  const key = JSON.stringify([state.build, question(state)]);
  const fresh = last.key !== key || !last.filter.isConnected;
  if (fresh) last = Object.assign(await build(main, state, signal), { key });
  const { table, flat, pane } = last;
  const before = last.state?.fn;
  last.state = state;
  table.state = state;
  if (!fresh && last.filter.value !== state.q) {
    last.filter.value = state.q;
    last.apply(state.q);
  }
  last.columns.follow();
  table.restore();
  if (state.fn) markOpen(table, flat, state);
  pane.hidden = !state.fn;
  if (!state.fn) {
    if (before && !fresh && innerWidth < BESIDE) main.scrollIntoView();
    return flat.report;
  }
  const shown = functionPane(pane, state, flat, signal);
  if (innerWidth < BESIDE) pane.scrollIntoView();
  await shown;
  return flat.report;
}
