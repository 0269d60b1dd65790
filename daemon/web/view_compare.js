// Two sides compared: builds, versions, times or label sets. Every row has an interval and a verdict.
import * as api from "./api.js";
import * as pictures from "./compare_flame.js";
import * as graphs from "./compare_graph.js";
import { answerOf, wholeOf } from "./compare_judge.js";
import { request, sideMenus, sideQuestion, suggestions } from "./compare_sides.js";
import * as words from "./compare_words.js";
import { choice, el, replace, say } from "./dom.js";
import * as format from "./format.js";
import { another, go, links, note, to } from "./state.js";
import { column, fitted, listing, matcher, NARROW, numbers } from "./table.js";
import { bar } from "./report_columns.js";

const FORMS = [
  ["", "Table"],
  ["flame", "Flame"],
  ["graph", "Graph"],
];
const WORTH_FILTER = 8; // rows
const FEW = ["verdict"]; // columns where there is little space
const ARROW = 24; // pixels between a caller and its callee
const REST = "rest"; // of the address: rows without a change are shown

/** Where a row's function is shown with callers and callees: in A, or in B if A does not have it. */
function there(row, state) {
  const report = another("report");
  if (row.address_a) return { ...report, fn: row.address_a, of: row.build_id_a === state.build ? "" : row.build_id_a };
  const { since, until, match } = sideQuestion(state, "b");
  const of = row.build_id_b === state.against ? "" : row.build_id_b;
  return { ...report, build: state.against, since, until, match, fn: row.address_b, of };
}

function nameColumn(state) {
  const namesOf = (row) => (row.caller === null ? [row.function] : [row.caller, row.function]);
  const cell = (row, space) => {
    const names = namesOf(row);
    const link = { ...to(state, there(row, state)), tabIndex: -1, title: names.join(" → ") };
    const own = (space - ARROW * (names.length - 1)) / names.length;
    return el("a", link, names.map((name) => fitted(format.shortName(name), own)).join(" → "));
  };
  return column("name", "Function", { value: (row) => namesOf(row).join(" "), cell });
}

/** All columns but the name. */
function columns(rows, metric, diff, table) {
  const rank = new Map(rows.map((r, i) => [r, i])); // the order of the interface: what changed comes first
  const share = metric.unit === "share";
  const verdict = (row) => {
    const { kind, sign, text, about } = words.verdict(row, diff, table);
    const slim = innerWidth < NARROW && /changed$/.test(row.verdict); // the change has the place of the words
    const mark = el("span", { "aria-hidden": "true" }, `${sign} `);
    return el("span", { class: `delta ${kind}`, title: about }, mark, slim ? words.changeOf(row) : text);
  };
  const number = (key, title, width, hint, cell, more = { still: true }) =>
    numbers(key, title, { width, hint, cell, ...more });
  const what = metric.unit === "seconds" ? "Per call" : share ? "Share" : "Calls";
  const side = (name) => {
    const cell = (row) => words.value(metric, row[name]);
    const value = (row) => row[name] ?? Number.NaN;
    return number(name, `${what} ${name.toUpperCase()}`, share ? 5.4 : 6.6, metric.hint, cell, { value });
  };
  const planned = format.percent(100 * diff.planned, 200);
  const per = "seconds of the function in each process that began: B less A. Rows stand in this order";
  const points = (row) => (words.changed(row) ? words.points(row) : "");
  const plan = (row) => {
    const text = words.plan(row, diff);
    return el("span", { title: text }, text);
  };
  const effect = { value: (row) => Math.abs(words.effect(row)) };
  const change = { value: (row) => (row.change === null ? Number.NaN : Math.abs(row.change)) };
  const beyond = "of B against A, without what all functions have in common";
  const first = (row) => String(rank.get(row)).padStart(8, "0");
  const cpu = (row) => bar(format.percent(100 * row.share, 200), 100 * row.share);
  const needs = `how much more data is needed to tell a change of ${planned} from chance`;
  const both = [side("a"), side("b")];
  return [
    column("verdict", "Verdict", { width: 11.5, value: first, cell: verdict }),
    ...(share
      ? [
          ...both,
          number("points", "Points", 4.8, "of the share: B less A", points),
          number("effect", "Per process", 7, per, words.effectText, { ...effect, rare: 2 }),
        ]
      : []),
    number("change", "Change", 6.2, beyond, words.changeOf, change),
    number("interval", "Change, 95 % interval", 13.2, "contains the true change in 95 of 100 cases", words.interval, {
      ...{ still: true, rare: 1 },
    }),
    ...(share
      ? []
      : [...both, number("share", "CPU share", 9.6, "on the side where it is larger", cpu, { bars: true })]),
    number("plan", `To detect ${planned}`, 10, needs, plan, { still: true, rare: 3 }),
  ];
}

/** The metric of the address, else the one that the daemon's answer speaks of. */
function metricOf(diff, state) {
  const tables = new Map(diff.metrics.map((t) => [t.metric, t]));
  const metric = [state.metric, diff.lead].map((key) => words.METRICS.find((m) => m.key === key)).find(Boolean);
  return { metric, table: tables.get(metric.key) };
}

function metricChooser(metric) {
  const change = (key) => go({ metric: key, sort: "", dir: "", row: "", top: "" });
  const about = { id: "metric", "aria-label": "What is compared", title: metric.hint };
  const all = words.METRICS.map(({ key, title }) => [key, title]);
  return choice(about, all, metric.key, change);
}

const formLinks = (state) => links("Shown as", FORMS, state.form, state, (form) => ({ form, q: "", row: "", top: "" }));

/** The rows that changed; the others are behind a button. */
function tableOf(diff, state, metric, table) {
  const { rows } = table;
  const folded = rows.filter((r) => !words.changed(r)).length;
  const folds = folded > 0 && folded < rows.length;
  const names = metric.key === "calls-per-parent" ? ["call", "calls"] : ["function", "functions"];
  const what = `${format.several(folded, ...names)} without a measurable change`;
  const turn = () => {
    note(state, { open: state.open === REST ? "" : REST, row: "", top: "" });
    list.apply(state.q);
    list.table.grow();
  };
  const rest = el("button.rest", { type: "button", onclick: turn });
  const wanted = (typed) => {
    const matches = matcher(typed);
    if (matches) return (row) => matches(`${row.caller ?? ""} ${row.function}`);
    return (row) => !folds || state.open === REST || words.changed(row);
  };
  const told = (typed, left) => {
    say(`${format.count(left.length)} of ${format.several(rows.length, "row", "rows")}`);
    rest.hidden = !folds || Boolean(typed);
    rest.setAttribute("aria-expanded", String(state.open === REST));
    rest.textContent = `${state.open === REST ? "Hide" : "Show"} ${what}`;
  };
  const all = [nameColumn(state), ...columns(rows, metric, diff, table)];
  const look = { about: "Filter functions", few: FEW, label: "Differences", sort: "verdict" };
  const list = listing({ ...look, wanted, told, columns: all, rows, state, open: (row) => go(there(row, state)) });
  return { ...list, rest };
}

function showTable(main, bars, diff, state) {
  const { metric, table } = metricOf(diff, state);
  const { table: drawn, filter, rest, show } = tableOf(diff, state, metric, table);
  const shared = words.common(table, metric);
  const narrow = innerWidth < NARROW;
  const spare = narrow && drawn.count < WORTH_FILTER && !state.q;
  const controls = [metricChooser(metric), formLinks(state), spare ? null : filter];
  const answer = answerOf(diff, { table });
  replace(
    main,
    el("div.compare.bar", bars, narrow ? null : controls),
    narrow ? [answer, el("div.bar", controls)] : answer,
    [drawn.node, rest],
    shared ? el("p.hint", shared) : null,
    wholeOf(diff),
  );
  show();
}

async function choose(main, state, signal) {
  const title = el("div.bar.compare", el("h2", "Compare with what?"));
  const suggested = await suggestions(state, signal);
  signal.throwIfAborted(); // what could not be asked is left out, and so is all of it in a view that was left
  replace(main, title, el("div.suggestions", suggested));
}

export async function draw(main, state, signal) {
  if (!state.against) return choose(main, state, signal);
  const diff = await api.json(`api/v1/diff?${api.query({ ...request(state), limit: 0 })}`, signal);
  signal.throwIfAborted();
  const bars = sideMenus(state, diff);
  if (state.form === "flame") await pictures.show(main, [bars, formLinks(state)], diff, state, signal);
  else if (state.form === "graph") await graphs.show(main, [bars, formLinks(state)], diff, state, signal);
  else showTable(main, bars, diff, state);
  return undefined;
}
