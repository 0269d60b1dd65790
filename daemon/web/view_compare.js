// Two sides compared: builds, versions, times or label sets. Every row has an interval and a verdict.
import * as api from "./api.js";
import * as pictures from "./compare_flame.js";
import * as graphs from "./compare_graph.js";
import { wholeOf } from "./compare_judge.js";
import { request, sideMenus, sideQuestion, suggestions, versionOf } from "./compare_sides.js";
import * as words from "./compare_words.js";
import { el, replace, say } from "./dom.js";
import * as format from "./format.js";
import { another, go, to } from "./state.js";
import { filterField, Table } from "./table.js";
import { bar, fitting, matcher, NARROW } from "./view_report.js";

const FORMS = [
  ["", "Table"],
  ["flame", "Flame"],
  ["graph", "Graph"],
];
const WORTH_FILTER = 8; // rows
const SHORT = 80; // characters: a longer answer stands below the rows of a narrow page
const FEW = ["verdict"]; // columns where there is little space

/** Where a row's function is shown with callers and callees: in A, or in B if A does not have it. */
function there(row, state) {
  const report = another("report");
  if (row.address_a) return { ...report, fn: row.address_a, of: row.build_id_a === state.build ? "" : row.build_id_a };
  const { since, until, match } = sideQuestion(state, "b");
  const of = row.build_id_b === state.against ? "" : row.build_id_b;
  return { ...report, build: state.against, since, until, match, fn: row.address_b, of };
}

const nameOf = (name) => (innerWidth < NARROW ? fitting(format.called(name)) : format.shortName(name));

function nameColumn(rows, state) {
  const cell = (i) => {
    const row = rows[i];
    const names = row.caller === null ? [row.function] : [row.caller, row.function];
    const link = { ...to(state, there(row, state)), tabIndex: -1, title: names.join(" → ") };
    return el("a", link, names.map(nameOf).join(" → "));
  };
  const value = (i) => (rows[i].caller === null ? "" : `${rows[i].caller} `) + rows[i].function;
  return { key: "name", title: "Function", value, cell };
}

function verdictColumns(rows, metric, diff, table) {
  const rank = new Map(rows.map((r, i) => [r, i])); // the order of the interface: what changed comes first
  const verdict = (i) => {
    const { kind, sign, text, about } = words.verdict(rows[i], metric, diff, table);
    const by = innerWidth < NARROW && (kind === "more" || kind === "less") ? ` ${words.changeOf(rows[i])}` : "";
    return el(
      "span",
      { class: `delta ${kind}`, title: about },
      el("span", { "aria-hidden": "true" }, `${sign} `),
      text,
      by,
    );
  };
  const change = (i) => {
    const row = rows[i];
    return el("span", { title: `95 % interval: ${words.interval(row) || "certain"}` }, words.changeOf(row));
  };
  const plan = (i) => {
    const needs = words.plan(rows[i], diff);
    return el("span", { title: needs }, needs);
  };
  const planned = format.percent(100 * diff.planned, 200);
  return [
    {
      key: "verdict",
      title: "Verdict",
      width: 11.5,
      value: (i) => String(rank.get(rows[i])).padStart(8, "0"),
      cell: verdict,
    },
    {
      key: "change",
      title: "Change",
      hint: "of B against A, without what all functions have in common",
      width: 6.6,
      numeric: true,
      value: (i) => (rows[i].change === null ? Number.NaN : Math.abs(rows[i].change)),
      cell: change,
    },
    {
      key: "interval",
      title: "95 % interval",
      hint: "the true change is in it in 95 of 100 cases",
      width: 11,
      numeric: true,
      still: true,
      cell: (i) => words.interval(rows[i]),
    },
    {
      key: "plan",
      title: `To tell ${planned}`,
      hint: `data that is missing before an increase by ${planned} can be told from chance`,
      width: 10.6,
      numeric: true,
      still: true,
      cell: plan,
    },
  ];
}

function valueColumns(rows, metric) {
  const what = metric.unit === "seconds" ? "Per call" : metric.unit === "share" ? "Share" : "Calls";
  const side = (name) => ({
    key: name,
    title: `${what} ${name.toUpperCase()}`,
    hint: metric.hint,
    width: 6.6,
    numeric: true,
    value: (i) => rows[i][name] ?? Number.NaN,
    cell: (i) => words.value(metric, rows[i][name]),
  });
  return [
    side("a"),
    side("b"),
    {
      key: "share",
      title: "CPU share",
      hint: "of the function, on the side where it is larger",
      width: 9.6,
      bars: true,
      numeric: true,
      value: (i) => rows[i].share,
      cell: (i) => bar(format.percent(100 * rows[i].share, 200), 100 * rows[i].share),
    },
  ];
}

/** The metric of the address, else the first one that says something. */
function metricOf(diff, state) {
  const tables = new Map(diff.metrics.map((t) => [t.metric, t]));
  const good = (m) => tables.get(m.key)?.not_computed === null && tables.get(m.key).rows.length > 0;
  const metric = words.METRICS.find((m) => m.key === state.metric) ?? words.METRICS.find(good) ?? words.METRICS[0];
  return { metric, table: tables.get(metric.key) };
}

function metricChooser(metric) {
  const option = (m) => el("option", { value: m.key, selected: m === metric }, m.title);
  const change = () => go({ metric: select.value, sort: "", dir: "", row: "", top: "" });
  const about = "What is compared";
  const select = el(
    "select",
    { id: "metric", "aria-label": about, title: metric.hint, onchange: change },
    words.METRICS.map(option),
  );
  return select;
}

const formLinks = (state) =>
  el(
    "span",
    { class: "presets", role: "group", "aria-label": "Shown as" },
    FORMS.map(([form, title]) =>
      el(
        "a",
        { ...to(state, { form, q: "", row: "", top: "" }), "aria-current": state.form === form ? "true" : null },
        title,
      ),
    ),
  );

function tableOf(diff, state) {
  const { metric, table } = metricOf(diff, state);
  const { rows } = table;
  const drawn = new Table({
    label: "Differences",
    columns: [nameColumn(rows, state), ...verdictColumns(rows, metric, diff, table), ...valueColumns(rows, metric)],
    count: rows.length,
    state,
    sort: "verdict",
    tall: true,
    open: (i) => go(there(rows[i], state)),
  });
  const apply = (text) => {
    const wanted = matcher(text);
    drawn.filter(wanted ? (i) => wanted(`${rows[i].caller ?? ""} ${rows[i].function}`) : undefined);
    say(`${format.count(drawn.rows.length)} of ${format.several(rows.length, "row", "rows")}`);
  };
  const filter = filterField(
    () => state,
    "Filter functions",
    "Filter (regex)",
    apply,
    () => drawn,
  );
  const finish = () => {
    if (innerWidth < NARROW) drawn.show(FEW, true);
    apply(state.q);
    drawn.restore();
  };
  return { metric, table, drawn, filter, finish };
}

function showTable(main, bars, diff, state) {
  const { metric, table, drawn, filter, finish } = tableOf(diff, state);
  const [answer, rest] = words.headline(table, metric, diff);
  const shared = words.common(table, metric);
  const more = [words.fewGroups(table, diff), shared ? ` ${shared}` : ""];
  const narrow = innerWidth < NARROW; // where a long text must not push the rows out of sight
  const spare = narrow && drawn.count < WORTH_FILTER && !state.q;
  const said = table.not_computed
    ? el("p", { class: "warning answer", title: table.not_computed }, `No verdicts: ${table.not_computed}.`)
    : el(
        "p",
        { class: "answer" },
        el("strong", {}, answer),
        ` ${rest}`,
        narrow ? null : more,
      );
  replace(
    main,
    el("div", { class: "compare bar" }, bars, metricChooser(metric), formLinks(state), spare ? null : filter),
    narrow && (table.not_computed || answer.length > SHORT)
      ? [drawn.node, said]
      : [said, narrow ? null : wholeOf(diff), drawn.node],
    narrow && !table.not_computed ? el("p", {}, more) : null,
    narrow ? wholeOf(diff) : null,
  );
  finish();
}

async function choose(main, state, signal) {
  const title = el("div", { class: "bar compare" }, el("h2", {}, "Compare with what?"));
  const suggested = await suggestions(state, signal);
  signal.throwIfAborted(); // what could not be asked is left out, and so is all of it in a view that was left
  replace(main, title, el("div", { class: "suggestions" }, suggested));
}

export async function draw(main, state, signal) {
  if (!state.against) return choose(main, state, signal);
  const [diff, ...versions] = await Promise.all([
    api.json(`api/v1/diff?${api.query({ ...request(state), limit: 0 })}`, signal),
    versionOf(state.build),
    versionOf(state.against),
  ]);
  signal.throwIfAborted();
  const bars = sideMenus(state, diff, versions);
  if (state.form === "flame") await pictures.show(main, [bars, formLinks(state)], diff, state, signal);
  else if (state.form === "graph") await graphs.show(main, [bars, formLinks(state)], diff, state, signal);
  else showTable(main, bars, diff, state);
  return undefined;
}
