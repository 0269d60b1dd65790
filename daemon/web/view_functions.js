// The top functions of a service, or of all that is allowed to be seen, across programs and builds; joined by name.
import * as api from "./api.js";
import { versionOf } from "./compare_sides.js";
import { choice, el, labelled, later, replace, say } from "./dom.js";
import * as format from "./format.js";
import { SAMPLED, truthChip } from "./origin.js";
import { filled, spark } from "./overview_day.js";
import { bar } from "./report_columns.js";
import { another, fleetQuestion, go, to } from "./state.js";
import { BESIDE, column, fitted, listing, NARROW, numbers, plain } from "./table.js";
import { charts, stamp, stepFor, versionsOf } from "./timeline.js";
import { equals, labelChips, labelsMenu, timeMenu } from "./toolbar.js";

const [FILE, LETTER] = [24, 7]; // pixels of a file's name beside that of its function, and of its letters
const LEAST = 64; // pixels that a name has beside a file
const MOST = 1000; // names that are fetched; the daemon sorts, so that these are the first ones
const AT_ONCE = 8; // programs that are asked for a function
const STEPS = 16; // of a trend, at most
const FEW = ["self", "calls"]; // columns where there is little space
const FEW_BESIDE = ["self", "total", "calls"]; // beside the builds with a function

const functionsUrl = (question) => `api/v1/functions?${api.query(question)}`;

/** Before calls that are sampled in some program: of a row, a program, or the whole answer. */
const markOf = (of) => (of.inexact_reasons?.includes("sampled") ? "~" : "");

/** Calls, and those from itself. */
const callsText = (row, mark = markOf(row)) =>
  mark + format.exact(row, "calls") + (row.self_calls ? `+${format.exact(row, "self_calls")}` : "");

/** Of what has ticks but no calls nothing was counted. Where there is little space, numbers are short. */
function callsCell(row, slim = innerWidth < BESIDE, mark = markOf(row)) {
  if (row.calls === 0 && row.self_calls === 0 && row.self_seconds > 0)
    return el("span", { title: "ticks fell into it; no call was counted" }, "–");
  const text = callsText(row, mark);
  return slim ? el("span", { title: text }, mark + format.short(row.calls)) : text;
}

function columns(rows, { first, amount, mark, state, trends }) {
  const everywhere = rows.every(markOf) ? mark : ""; // then the title has it
  const widest = rows.reduce((most, row) => Math.max(most, callsText(row).length), 0);
  const each = (row) => (row.calls > 0 && !markOf(row) ? row.self_seconds / row.calls : Number.NaN);
  const name = (row, space) => {
    const whole = row.short_name ?? row.name;
    const base = innerWidth >= NARROW ? format.base(row.file) : "";
    const left = space - FILE - LETTER * base.length;
    const file = left > LEAST && fitted(whole, left) === whole ? base : ""; // the name goes first
    const title = row.file && !file ? `${row.name}, ${row.file}` : row.name;
    return [
      el("a", { ...to(state, place(row)), tabIndex: -1, title }, file ? whole : fitted(whole, space)),
      file ? el("span.chip", { title: row.file }, file) : null,
    ];
  };
  const time = (field, percent, hint) => ({
    value: (row) => row[field],
    cell: (row) => bar(amount(row[field]), row[percent]),
    ...{ width: 9.2, bars: true, slim: 5.7, hint },
  });
  const trend = (row) => filled(trends(), (all) => (all.of(row) ? spark(all.of(row), "Self time") : []));
  const within = ({ object, builds, programs }) => {
    const [code, all] = [format.several(builds, "build", "builds"), format.several(programs, "build", "builds")];
    const title = `${object}: its code is in ${code}, and it is in the reports of ${all} of programs`;
    return el("span", { title }, builds > 1 ? `${object} ×${builds}` : object);
  };
  const calls = {
    cell: (row) => callsCell(row),
    width: innerWidth < BESIDE ? 7.2 : Math.max(6.2, 0.58 * widest + 2.5),
    hint: mark ? SAMPLED : undefined,
  };
  const sum = "self time and that of callees, added up over the reports of the programs";
  const perCall = { value: each, cell: (row) => amount(each(row), row.self_seconds), rare: 2 };
  return [
    column("name", "Function", { cell: name }),
    numbers("self", "Self", time("self_seconds", "percent", "time in the function itself")),
    numbers("percent", "Self %", { cell: (row) => format.share(row.percent, first.ticks), rare: 1 }),
    numbers("trend", "Trend", { cell: trend, still: true, width: 7.6, hint: "self time over the chosen time" }),
    numbers("total", "Total", time("total_seconds", "total_percent", sum)),
    numbers("calls", `${everywhere}Calls`, calls),
    // of a sampled call no time is known
    ...(everywhere ? [] : [numbers("percall", "Self/call", perCall)]),
    column("object", "In", { cell: within, width: 9, rare: 3, hint: "the program or library that contains it" }),
  ];
}

/** The self time of rows in steps: {of(row), from, width, step}. One answer, which the list does not wait for. */
async function trendsOf(asked, { first, last }, signal) {
  const step = stepFor((Date.parse(last) - Date.parse(first)) / 1000, STEPS);
  const { rows, step: width, trend_since: since } = await api.json(functionsUrl({ ...asked, step }), signal);
  const known = new Map(rows.map(({ name, file, trend }) => [name + file, trend]));
  return { of: ({ name, file }) => known.get(name + file), from: Date.parse(since) / 1000, width, step };
}

/** The self time of a row over time. versions: of its program, where it is one. */
function overTime(trend, { from, width, step }, versions, amount, state) {
  const rows = trend.map((self, k) => ({ time: stamp(from + k * width), width, self }));
  const range = { from, width, bars: rows.length };
  const parts = [["Self", (r) => r.self, amount]];
  const label = `The function in steps of ${step}`;
  return [el("h3", "Over time"), charts({ id: "brush", label, range, rows, parts, versions, state, captions: true })];
}

const place = (row) => ({ fn: row.name, of: row.file || "" });

/** One click for what people ask for most: a service. */
async function services(state, signal) {
  const page = await api.rows("api/v1/labels/service/values?limit=1000", 5000, signal).catch(() => ({ rows: [] }));
  if (!page.rows.length) return null;
  const others = state.match.filter((m) => !m.startsWith('service="'));
  const all = page.rows.map(({ value }) => [equals("service", value), value]);
  const now = all.find(([match]) => state.match.includes(match))?.[0] ?? "";
  const pick = (match) => go({ match: match ? [...others, match] : others, row: "", top: "" });
  const select = choice({ id: "service" }, [["", "all services"], ...all], now, pick);
  if (page.more) select.append(el("option", { disabled: true }, "… not all services are listed"));
  return labelled("Service", select);
}

/** A sentence on what the sum leaves out. */
function rest(page, amount) {
  const n = page.not_joined; // its "programs" are builds of programs
  const parts = [
    n.unnamed_functions > 0
      ? `${amount(n.unnamed_seconds)} in ${format.many(n, "unnamed_functions", "function", "functions")} ` +
        `without names (${format.many(n, "unnamed_builds", "build", "builds")} without symbols)`
      : "",
    n.ambiguous_functions > 0
      ? `${amount(n.ambiguous_seconds)} in ${format.many(n, "ambiguous_functions", "function", "functions")} with ` +
        `${format.many(n, "ambiguous_names", "name that is", "names that are")} ambiguous in one build`
      : "",
    n.other_seconds > 0 ? `${amount(n.other_seconds)} outside every function` : "",
    n.programs > 0 ? format.many(n, "programs", "build", "builds") + " of programs with less CPU time" : "",
  ].filter(Boolean);
  return parts.length ? el("p.warning", { id: "not-joined" }, `Not added up: ${parts.join("; ")}.`) : null;
}

/** What was added up. */
function headline(first, amount, mark, state) {
  const parts = [
    `${amount(first.seconds)}${state.dimension ? ` ${state.dimension}` : " of CPU time"}`,
    mark + format.many(first, "calls", "call", "calls"),
    format.many(first, "programs", "build", "builds"),
    format.many(first, "processes_started", "process", "processes"),
    format.many(first, "uploads", "upload", "uploads"),
  ];
  const title = "Functions of the same name in several programs and builds are added up.";
  return el("p.headline", { title }, `${parts.join(", ")}.`);
}

/** Whether so much is left out that the rows mislead without that sentence beside them. */
const missesMuch = ({ not_joined: n, seconds }) =>
  n.programs > 0 || n.unnamed_seconds + n.ambiguous_seconds + n.other_seconds > seconds / 100;

function truth(first, amount, mark) {
  const why = first.exact ? "Exact: no call and no tick was lost on the way." : "Not exact, for these reasons: ";
  return [
    el("p", why, first.inexact_reasons.join(", ")),
    mark ? el("p.warning", { id: "sampled" }, `~ Calls are ${SAMPLED}.`) : null,
    missesMuch(first) ? null : rest(first, amount),
  ];
}

/** The builds of programs of a row, those with most CPU time first, until all are found that it is the sum of. */
async function programsOf(row, state, signal) {
  const { rows } = await api.rows("api/v1/builds?limit=1000", 20000, signal);
  const programs = rows.filter((r) => r.is_program).sort((a, b) => b.seconds - a.seconds);
  const { since, until, match, dimension } = state;
  const ask = (program) =>
    api
      .json(
        api.path(program.build_id, "/functions", { since, until, match, dimension, name: row.name, limit: 1000 }),
        signal,
      )
      .then(
        (page) =>
          page.rows.filter((r) => r.name === row.name && r.file.endsWith(row.file)).map((r) => ({ ...r, program })),
        () => [],
      );
  const found = new Map();
  for (let at = 0; at < programs.length && found.size < row.programs; at += AT_ONCE)
    for (const list of await Promise.all(programs.slice(at, at + AT_ONCE).map(ask)))
      if (list.length) found.set(list[0].program.build_id, list);
  return [...found.values()].flat();
}

/** Whether a row is that of the address. */
const opened = (state) => (row) => row.name === state.fn && (!state.of || row.file === state.of);

/** The row of the address: one that is listed, or one that is asked for. */
async function rowOf(rows, state, signal) {
  const wanted = opened(state);
  const listed = rows.find(wanted);
  if (listed) return listed;
  const question = { ...fleetQuestion(state), name: state.fn, limit: String(MOST) };
  return (await api.json(functionsUrl(question), signal)).rows.find(wanted);
}

/** The builds of programs that a row is the sum of; each opens callers and callees there. */
async function where(pane, rows, { amount, mark, state, trends, signal }) {
  const close = el("a", { ...to(state, { fn: "", of: "" }), id: "pane-close" }, "Close");
  const head = el("div.bar", el("h2.function", state.fn), close);
  replace(pane, head, el("p", { role: "status" }, "Loading…"));
  const row = await rowOf(rows, state, signal);
  if (!row) {
    const none = "No program has a function of this name in this time range.";
    replace(pane, head, el("p", none));
    return;
  }
  const found = await programsOf(row, state, signal);
  const version = (build) => {
    const chip = el("span.version");
    versionOf(build).then((text) => replace(chip, text));
    return chip;
  };
  const calls = (r, of) => callsCell(r, innerWidth < NARROW, markOf(of));
  const line = ({ program, ...r }) => {
    const of = r.build_id === program.build_id ? "" : r.build_id;
    const there = to(state, { ...another("report"), build: program.build_id, fn: r.address, of });
    const id = el("code", { title: program.build_id }, program.build_id.slice(0, 8));
    const name = [el("a", there, format.base(program.name)), " ", version(program.build_id), " ", id];
    return [name, amount(r.self_seconds), amount(r.total_seconds), calls(r, program)];
  };
  const missing = row.programs - new Set(found.map((r) => r.program.build_id)).size;
  const sum = [el("strong", "Together"), amount(row.self_seconds), amount(row.total_seconds), calls(row, row)];
  const lines = [sum, ...found.sort((a, b) => b.self_seconds - a.self_seconds).map(line)];
  const rest = `${format.several(missing, "build is", "builds are")} not listed: their own reports cannot be read.`;
  const table = plain("The builds of this sum", [["Build"], ["Self", 1], ["Total", 1], ["Calls", 1]], lines);
  table.className = "arcs builds";
  const hint = el("p.hint", "A build shows the function's callers and callees in it.");
  const chart = el("section", { "aria-label": "Over time" });
  replace(pane, head, table, missing > 0 ? el("p.hint", rest) : null, hint, chart);
  const programs = new Set(found.map((r) => format.base(r.program.name)));
  const asked = Promise.all([trends(), versionsOf(programs.size === 1 ? [...programs][0] : "", signal)]);
  const show = ([all, versions]) => all.of(row) && replace(chart, overTime(all.of(row), all, versions, amount, state));
  later(asked, show);
}

const ORDERS = { self: "with the most self time", total: "with the most total time", calls: "called most" };

export async function draw(main, state, signal) {
  const sort = ORDERS[state.sort] ? state.sort : "self";
  const question = { ...fleetQuestion(state), sort, limit: String(MOST) };
  const list = api.json(functionsUrl({ ...question, names: "short" }), signal);
  const [first, chooser] = await Promise.all([list, services(state, signal)]);
  const { rows, next: more } = first;
  const amount = format.amounts(state.dimension || undefined, first);
  const mark = markOf(first);
  const pane = el("section.pane", { "aria-label": "Builds", hidden: true });
  let asked = null;
  const trends = () => (asked ??= trendsOf(question, first, signal));
  const told = (text, shown) => {
    const found = format.several(shown.length, "function", "functions");
    const all = `the ${format.count(rows.length)} ${ORDERS[sort]}; there are ${format.count(first.names)}`;
    say(!more ? found : text ? `${found} among ${all}` : `${found} ${ORDERS[sort]}, of ${format.count(first.names)}`);
  };
  const { table, filter, show } = listing({
    about: "Filter functions",
    text: (row) => row.name,
    told,
    few: FEW,
    label: "Functions of all builds",
    columns: columns(rows, { first, amount, mark, state, trends }),
    rows,
    state,
    sort: "self",
    open: (row) => go(place(row)),
    sorted: (key) => more && ORDERS[key] && go({}),
  });
  const choices = [chooser, timeMenu(state), labelsMenu(state), labelChips(state)];
  const chip = truthChip(first, null, truth(first, amount, mark));
  replace(
    main,
    el("div.toolbar", el("h1", "Top functions"), filter, choices, chip),
    headline(first, amount, mark, state),
    missesMuch(first) ? rest(first, amount) : null,
    rows.length ? el("div.split", table.node, pane) : el("p.empty", "No upload has these labels in this time range."),
  );
  show();
  if (!state.fn) return;
  if (innerWidth >= NARROW) table.show(FEW_BESIDE, true);
  const at = rows.findIndex(opened(state));
  if (at !== table.rows[table.active]) table.select(at);
  pane.hidden = false;
  if (innerWidth < BESIDE) pane.scrollIntoView();
  await where(pane, rows, { amount, mark, state, trends, signal });
}
