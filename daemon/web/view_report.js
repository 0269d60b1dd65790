// The table of functions, and beside it one function between its callers and its callees.
import * as api from "./api.js";
import { flatUrl } from "./asks.js";
import { matchOf, splitChoice, timeChoice, valuesOf } from "./choices.js";
import { el, replace, say } from "./dom.js";
import * as format from "./format.js";
import { functionPane } from "./pane_function.js";
import { menu } from "./menu.js";
import { columnsOf, NARROW } from "./report_columns.js";
import { go, note, question, to } from "./state.js";
import { filterField, Table } from "./table.js";

/** The flat report: columns, and how its functions are named in the address bar. */
export async function load(build, params, signal) {
  const report = await api.json(flatUrl(build, params), signal);
  const c = report.columns;
  const id = (i) => (c.build[i] === null ? "" : report.builds[c.build[i]].build_id);
  return { report, columns: c, count: c.index.length, id };
}

const FEW = ["self", "total", "calls"]; // columns where there is little space
const PHONE = ["self", "total"];
const FEW_SPLIT = ["self", "part0", "part1"];
const SPARED = ["selfp", "percent", "range", "percall", "totalcall", "build"]; // where labels have columns
const PARTS = 6; // values of a label

/** The columns that the address names, else those that have space. */
function shownColumns(table, state) {
  if (state.cols) return state.cols.split(",");
  if (little(state)) return state.split ? FEW_SPLIT : innerWidth < NARROW ? PHONE : FEW;
  const range = table.all.some((c) => c.key === "range");
  const rare = ["percaller", ...(state.split ? SPARED : range ? ["selfp"] : [])];
  return table.all.map((c) => c.key).filter((key) => !rare.includes(key));
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

/** The report of each value of the label by which the address splits. */
async function partsOf(state, signal) {
  if (!state.split) return [];
  const { values } = await valuesOf(state, PARTS, signal);
  const ask = async (value) => {
    const params = { ...question(state), match: matchOf(state, value), sort: "self" };
    return { value, flat: await load(state.build, params, signal) };
  };
  return Promise.all(values.map(ask));
}

export { bar, fitting, NARROW } from "./report_columns.js";

let last = { key: "" };

/** The table, and what is asked when it changes. Kept while only the function beside it is another. */
async function build(main, state, signal) {
  const [flat, parts] = await Promise.all([load(state.build, question(state), signal), partsOf(state, signal)]);
  const kept = {
    state,
    flat,
    pane: el("section", { class: "pane", "aria-label": "Callers and callees", hidden: true, tabIndex: -1 }),
  };
  kept.table = new Table({
    label: "Functions",
    columns: columnsOf(flat, () => kept.state, parts),
    count: flat.count,
    state,
    sort: "self",
    tall: true,
    open: (i) => go({ fn: flat.columns.address[i], of: flat.id(i) === flat.report.build_id ? "" : flat.id(i) }),
  });
  kept.apply = (text) => {
    const wanted = matcher(text);
    kept.table.filter(wanted ? (i) => wanted(flat.columns.name[i]) : undefined);
    if (!flat.count) return;
    const { seconds } = flat.report.totals;
    const share = kept.table.rows.reduce((sum, i) => sum + flat.columns.self_seconds[i], 0);
    say(
      `${format.count(kept.table.rows.length)} of ${format.several(flat.count, "function", "functions")}` +
        (seconds > 0 ? `, ${format.percent((100 * share) / seconds)} of self time` : ""),
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
  kept.apply(state.q);
  const hidden = flat.report.truncated;
  const whole = hidden
    ? el(
        "p",
        { class: "warning" },
        `Not shown: ${format.several(hidden.functions, "function", "functions")} with ` +
          `${format.amounts(flat.report.totals.dimension, flat.report.totals)(hidden.seconds)}.`,
      )
    : null;
  const body = flat.count ? el("div", { class: "split" }, kept.table.node, kept.pane) : empty(flat.report, state);
  replace(
    main,
    el(
      "div",
      { class: "bar" },
      el("h2", {}, format.several(flat.count, "function", "functions")),
      flat.count
        ? [
            kept.filter,
            kept.columns.node,
            splitChoice(state, { cols: "", sort: "", dir: "" }),
            timeChoice(flat.report),
          ]
        : null,
    ),
    whole,
    body,
  );
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
  const chosen = flat.columns.address.findIndex(
    (a, i) => a === state.fn && flat.id(i).startsWith(state.of || state.build),
  );
  const at = table.rows.indexOf(chosen);
  if (chosen >= 0 && at >= 0 && at !== table.active) table.select(chosen);
}

const BESIDE = 1100; // pixels of a window from which the pane stands beside the table

export async function draw(main, state, signal) {
  const key = JSON.stringify([state.build, state.split, question(state)]);
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
