// The top functions of a service, or of all that is allowed to be seen, across programs and builds; joined by name.
import * as api from "./api.js";
import { versionOf } from "./compare_sides.js";
import { el, replace, say } from "./dom.js";
import * as format from "./format.js";
import { sampled, SAMPLED, truthChip } from "./origin.js";
import { another, fleetQuestion, go, to } from "./state.js";
import { filterField, Table } from "./table.js";
import { labelChips, labelsMenu, timeMenu } from "./toolbar.js";
import { bar, fitting, matcher, NARROW } from "./view_report.js";

const MOST = 5000; // names that are fetched; the daemon sorts, so that these are the first ones
const PROGRAMS = 20; // that are asked where a function is
const FEW = ["self", "calls"]; // columns where there is little space
const BESIDE = ["self", "total", "calls"]; // beside the programs with a function
const SORTS = ["self", "total", "calls"];

/** Calls, and those from itself. */
const callsText = (row, mark) =>
  mark + format.exact(row, "calls") + (row.self_calls ? `+${format.exact(row, "self_calls")}` : "");

/** Of what has ticks but no calls nothing was counted. Where there is little space, numbers are short. */
function callsCell(row, mark) {
  if (row.calls === 0 && row.self_calls === 0 && row.self_seconds > 0)
    return el("span", { title: "ticks fell into it; no call was counted" }, "–");
  const text = callsText(row, mark);
  return innerWidth < NARROW ? el("span", { title: text }, mark + format.short(row.calls)) : text;
}

function perCallColumn(rows, amount) {
  const each = (i) => (rows[i].calls > 0 ? rows[i].self_seconds / rows[i].calls : Number.NaN);
  const cell = (i) => amount(each(i), rows[i].self_seconds);
  return { key: "percall", title: "Self/call", numeric: true, value: each, cell };
}

function columns(rows, first, amount, mark, state) {
  const hint = mark ? SAMPLED : undefined;
  const widest = rows.reduce((most, row) => Math.max(most, callsText(row, mark).length), 0);
  return [
    {
      key: "name",
      title: "Function",
      value: (i) => rows[i].name,
      cell: (i) => [
        el(
          "a",
          { ...to(state, place(rows[i])), tabIndex: -1, title: rows[i].name },
          fitting(rows[i].short_name ?? rows[i].name),
        ),
        rows[i].file && innerWidth >= NARROW
          ? el("span", { class: "chip", title: rows[i].file }, format.base(rows[i].file))
          : null,
      ],
    },
    {
      key: "self",
      title: "Self",
      width: 9.2,
      bars: true,
      numeric: true,
      value: (i) => rows[i].self_seconds,
      cell: (i) => bar(amount(rows[i].self_seconds), rows[i].percent),
    },
    {
      key: "percent",
      title: "Self %",
      numeric: true,
      value: (i) => rows[i].percent,
      cell: (i) => format.share(rows[i].percent, first.ticks),
    },
    {
      key: "total",
      width: 9.2,
      bars: true,
      title: "Total",
      hint: "self time and callees, added up over the reports of the programs",
      numeric: true,
      value: (i) => rows[i].total_seconds,
      cell: (i) => bar(amount(rows[i].total_seconds), rows[i].total_percent),
    },
    {
      key: "calls",
      title: `${mark}Calls`,
      width: innerWidth < NARROW ? 7.2 : Math.max(6.2, 0.58 * widest + 2.5),
      hint,
      numeric: true,
      value: (i) => rows[i].calls,
      cell: (i) => callsCell(rows[i], mark),
    },
    // of a sampled call no time is known
    ...(mark ? [] : [perCallColumn(rows, amount)]),
    {
      key: "programs",
      title: "Programs",
      numeric: true,
      value: (i) => rows[i].programs,
      cell: (i) => format.count(rows[i].programs),
    },
    {
      key: "builds",
      title: "Builds",
      numeric: true,
      value: (i) => rows[i].builds,
      cell: (i) => format.count(rows[i].builds),
    },
  ];
}

const place = (row) => ({ fn: row.name, of: row.file || "" });

/** One click for what people ask for most: a service. */
async function services(state, signal) {
  const page = await api.rows("api/v1/labels/service/values?limit=1000", 5000, signal).catch(() => ({ rows: [] }));
  if (!page.rows.length) return null;
  const others = state.match.filter((m) => !m.startsWith('service="'));
  const quoted = (value) => `service="${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
  const select = el(
    "select",
    {
      id: "service",
      onchange: () => go({ match: select.value ? [...others, select.value] : others, row: "", top: "" }),
    },
    el("option", { value: "" }, "all services"),
    page.rows.map((row) =>
      el("option", { value: quoted(row.value), selected: state.match.includes(quoted(row.value)) }, row.value),
    ),
    page.more ? el("option", { disabled: true }, "… not all services are listed") : null,
  );
  return el("span", { class: "bar" }, el("label", { for: "service" }, "Service"), select);
}

/** A sentence on what the sum leaves out. */
function rest(page, amount) {
  const n = page.not_joined;
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
    n.programs > 0 ? format.many(n, "programs", "program", "programs") + " with less CPU time" : "",
  ].filter(Boolean);
  return parts.length ? el("p", { class: "warning", id: "not-joined" }, `Not added up: ${parts.join("; ")}.`) : null;
}

/** What was added up. */
function headline(first, amount, mark, state) {
  const parts = [
    `${amount(first.seconds)}${state.dimension ? ` ${state.dimension}` : " of CPU time"}`,
    mark + format.many(first, "calls", "call", "calls"),
    format.many(first, "programs", "program", "programs"),
    format.many(first, "processes_started", "process", "processes"),
    format.many(first, "uploads", "upload", "uploads"),
  ];
  const title = "Functions of the same name in several programs and builds are added up.";
  return el("p", { class: "headline", title }, `${parts.join(", ")}.`);
}

function truth(first, amount, mark) {
  const why = first.exact ? "Exact: no call and no tick was lost on the way." : "Not exact, for these reasons: ";
  return [
    el("p", {}, why, first.inexact_reasons.join(", ")),
    mark ? el("p", { class: "warning", id: "sampled" }, `~ Calls are ${SAMPLED}.`) : null,
    rest(first, amount),
  ];
}

/** Where a function of that name is: programs are asked one by one, the latest first. */
async function where(pane, amount, state, signal) {
  const { rows } = await api.rows("api/v1/builds?limit=1000", 20000, signal);
  const programs = rows.filter((r) => r.is_program).sort((a, b) => Date.parse(b.last_seen) - Date.parse(a.last_seen));
  const asked = { since: state.since, until: state.until, match: state.match, dimension: state.dimension };
  const ask = (b) =>
    api.json(api.path(b.build_id, "/functions", { ...asked, name: state.fn, limit: "1000" }), signal).then(
      (page) => page.rows.filter((r) => r.name === state.fn).map((r) => ({ ...r, program: b })),
      () => [],
    );
  const found = (await Promise.all(programs.slice(0, PROGRAMS).map(ask))).flat();
  const there = ({ program, ...r }) =>
    to(state, {
      ...another("report"),
      build: program.build_id,
      fn: r.address,
      of: r.build_id === program.build_id ? "" : r.build_id,
    });
  const version = (build) => {
    const chip = el("span", { class: "version" });
    versionOf(build).then((text) => replace(chip, text));
    return chip;
  };
  const line = ({ program, ...r }) =>
    el(
      "tr",
      {},
      el(
        "td",
        {},
        el("a", there({ program, ...r }), format.base(program.name)),
        " ",
        version(program.build_id),
        " ",
        el("code", { title: program.build_id }, format.brief(program.build_id)),
      ),
      el("td", { class: "n" }, amount(r.self_seconds)),
      el("td", { class: "n" }, amount(r.total_seconds)),
      el("td", { class: "n" }, format.exact(r, "calls")),
    );
  const head = el(
    "tr",
    {},
    ["Program", "Self", "Total", "Calls"].map((t, i) => el("th", { scope: "col", class: i ? "n" : "" }, t)),
  );
  replace(
    pane,
    el(
      "div",
      { class: "bar" },
      el("h2", { class: "function" }, state.fn),
      el("a", { ...to(state, { fn: "", of: "" }), id: "pane-close" }, "Close"),
    ),
    found.length
      ? el(
          "table",
          { class: "arcs" },
          el("caption", {}, "Programs with this function; each opens callers and callees"),
          el("thead", {}, head),
          el("tbody", {}, found.map(line)),
        )
      : el("p", {}, "None of the latest programs has a function of this name in this time range."),
    programs.length > PROGRAMS
      ? el("p", { class: "hint" }, `The ${PROGRAMS} latest of ${format.count(programs.length)} programs were searched.`)
      : null,
  );
}

export async function draw(main, state, signal) {
  const sort = SORTS.includes(state.sort) ? state.sort : "self";
  const url = `api/v1/functions?${api.query({ ...fleetQuestion(state), sort, limit: "1000", names: "short" })}`;
  const [page, chooser] = await Promise.all([api.rows(url, MOST, signal), services(state, signal)]);
  const { rows, first, more } = page;
  const amount = format.amounts(state.dimension || undefined, first);
  const mark = sampled({ provenance: first }) ? "~" : "";
  const pane = el("section", { class: "pane", "aria-label": "Programs", hidden: true });
  const table = new Table({
    label: "Functions of all builds",
    columns: columns(rows, first, amount, mark, state),
    count: rows.length,
    state,
    sort: "self",
    tall: true,
    open: (i) => go(place(rows[i])),
    sorted: (key) => more && SORTS.includes(key) && go({}),
  });
  const apply = (text) => {
    const wanted = matcher(text);
    table.filter(wanted ? (i) => wanted(rows[i].name) : undefined);
    const all = format.count(rows.length);
    const listed = more ? `the first ${all} by ${sort}, of ${format.count(first.names)}` : all;
    say(`${format.count(table.rows.length)} of ${listed} functions`);
  };
  replace(
    main,
    el(
      "div",
      { class: "toolbar" },
      el("h1", {}, "Top functions"),
      filterField(
        () => state,
        "Filter functions",
        "Filter (regex)",
        apply,
        () => table,
      ),
      chooser,
      timeMenu(state),
      labelsMenu(state),
      labelChips(state),
      truthChip(first, null, truth(first, amount, mark)),
    ),
    headline(first, amount, mark, state),
    rows.length
      ? el("div", { class: "split" }, table.node, pane)
      : el("p", { class: "empty" }, "No upload has these labels in this time range."),
  );
  if (innerWidth < NARROW) table.show(FEW, true);
  else if (state.fn) table.show(BESIDE, true);
  apply(state.q);
  table.restore();
  if (state.fn && !state.row && !state.top)
    table.select(rows.findIndex((r) => r.name === state.fn && (r.file || "") === state.of));
  if (state.fn) {
    pane.hidden = false;
    replace(pane, el("p", { role: "status" }, "Loading…"));
    await where(pane, amount, state, signal);
  }
}
