// The table of functions, and beside it one function between its callers and its callees.
import * as api from "./api.js";
import { flatUrl } from "./asks.js";
import { matchOf, splitChoice, timeChoice, unfiltered, valuesOf } from "./choices.js";
import { el, replace, say } from "./dom.js";
import * as format from "./format.js";
import { functionPane } from "./pane_function.js";
import { menu } from "./menu.js";
import { columnsOf } from "./report_columns.js";
import { go, note, question } from "./state.js";
import { BESIDE, listing, NARROW } from "./table.js";

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
const PHONE_SPLIT = ["part0", "part1"];
const SPARED = ["selfp", "percent", "range", "bycalls", "percall", "totalcall", "build"]; // where labels have columns
const PARTS = 6; // values of a label

/** The columns that the address names, else those that have space, and whether names have the place of bars. */
function shownColumns(table, state) {
  const little = Boolean(state.fn) || innerWidth < NARROW;
  if (state.cols) return [state.cols.split(","), little || innerWidth < BESIDE];
  const few = innerWidth < NARROW ? [PHONE, PHONE_SPLIT] : [FEW, FEW_SPLIT];
  if (little) return [few[state.split ? 1 : 0], true];
  return table.fitting(table.all.filter((c) => c.key !== "percaller" && !(state.split && SPARED.includes(c.key))));
}

/** Which columns are shown. now(): the present state. */
function columnMenu(table, now) {
  const boxes = table.all.slice(1).map((c) => {
    const change = () => {
      const [keys, slim] = shownColumns(table, now());
      const on = keys.filter((key) => key !== c.key && key !== "name");
      const cols = [...(box.checked ? [...on, c.key] : on)].join(",") || "none";
      note(now(), { cols });
      table.show(cols.split(","), slim);
    };
    const box = el("input", { id: `col-${c.key}`, type: "checkbox", onchange: change });
    return { box, key: c.key, line: el("p.check", box, el("label", { for: box.id }, c.title)) };
  });
  const node = menu(
    "columns",
    "Columns of the table",
    "Columns",
    boxes.map(({ line }) => line),
  );
  const follow = () => {
    const [keys, slim] = shownColumns(table, now());
    for (const { box, key } of boxes) box.checked = keys.includes(key);
    table.show(keys, slim);
  };
  return { node, follow };
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

let last = { key: "" };

/** The table, and what is asked when it changes. Kept while only the function beside it is another. */
async function build(main, state, signal) {
  const [flat, parts] = await Promise.all([load(state.build, question(state), signal), partsOf(state, signal)]);
  const kept = {
    state,
    flat,
    pane: el("section.pane", { "aria-label": "Callers and callees", hidden: true, tabIndex: -1 }),
  };
  const told = (_, rows) => {
    if (!flat.count) return;
    const { seconds } = flat.report.totals;
    const share = rows.reduce((sum, i) => sum + flat.columns.self_seconds[i], 0);
    const part = seconds > 0 ? `, ${format.percent((100 * share) / seconds)} of self time` : "";
    say(`${format.count(rows.length)} of ${format.several(flat.count, "function", "functions")}${part}`);
  };
  const list = listing({
    about: "Filter functions",
    text: (i) => flat.columns.name[i],
    told,
    label: "Functions",
    columns: columnsOf(flat, () => kept.state, parts),
    rows: flat.count,
    state,
    sort: "self",
    open: (i) => go({ fn: flat.columns.address[i], of: flat.id(i) === flat.report.build_id ? "" : flat.id(i) }),
  });
  Object.assign(kept, list);
  kept.columns = columnMenu(kept.table, () => kept.state);
  kept.apply(state.q);
  const hidden = flat.report.truncated;
  const whole = hidden
    ? el(
        "p.warning",
        `Not shown: ${format.several(hidden.functions, "function", "functions")} with ` +
          `${format.amounts(flat.report.totals.dimension, flat.report.totals)(hidden.seconds)}.`,
      )
    : null;
  const body = flat.count ? el("div.split", kept.table.node, kept.pane) : empty(state);
  replace(
    main,
    el(
      "div.bar",
      el("h2", format.several(flat.count, "function", "functions")),
      flat.count
        ? [kept.filter, kept.columns.node, splitChoice(state, { cols: "", sort: "", dir: "" }), timeChoice(flat.report)]
        : null,
    ),
    whole,
    body,
  );
  return kept;
}

/** Why nothing is shown, and a way to where there is something. */
function empty(state) {
  const all = unfiltered(state);
  const none = "No upload of this build has these labels in this time range. ";
  return el("p.empty", all ? [none, all] : "No function of this build was called or sampled.");
}

/** The row of the function that is open is the marked one. */
function markOpen(table, flat, state) {
  const chosen = flat.columns.address.findIndex(
    (a, i) => a === state.fn && flat.id(i).startsWith(state.of || state.build),
  );
  const at = table.rows.indexOf(chosen);
  if (chosen >= 0 && at >= 0 && at !== table.active) table.select(chosen);
}

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
