// The start page: programs with their versions, share of CPU time, trend and machines; builds below their program.
import * as api from "./api.js";
import { button, choice, el, labelled, replace, say } from "./dom.js";
import * as format from "./format.js";
import { chosen, dayOf, filled, forget, spark } from "./overview_day.js";
import { changeLink, comparisons } from "./overview_change.js";
import { another, go, note, to } from "./state.js";
import { ago, BESIDE, column, fitted, listing, NARROW, numbers } from "./table.js";
import { equals, labelChips, labelsMenu, timeMenu } from "./toolbar.js";
import { bar } from "./report_columns.js";

const LIBRARIES = "Libraries";
const [CHIP, MARK] = [56, 20]; // pixels of what stands beside a name
const VALUES_MOST = 100; // values of a label that are asked for at first: each is one request
const ROUGH = 200; // times have the digits of that number of ticks: the list does not know how many there were

/** A process is told for its program, and for each library of it, too. */
const programsOf = (list) => (list.some((b) => b.is_program) ? list.filter((b) => b.is_program) : list);
const sum = (list, field) => list.reduce((all, row) => all + Number(row[`${field}_str`] ?? row[field]), 0);
const newest = (list) => list.reduce((a, b) => (Date.parse(b.last_seen) > Date.parse(a.last_seen) ? b : a));

/** Programs by name, most CPU time first; what is no program is one group, the last one. */
function groupsOf(builds) {
  const byName = new Map();
  for (const b of builds) {
    const name = b.is_program ? format.base(b.name) || "?" : LIBRARIES;
    (byName.get(name) ?? byName.set(name, []).get(name)).push(b);
  }
  const groups = [...byName].map(([name, list]) => ({
    name,
    builds: list.sort((a, b) => Date.parse(b.last_seen) - Date.parse(a.last_seen)),
    folded: name === LIBRARIES && !list[0].is_program,
    seconds: sum(list, "seconds"),
    last: newest(list),
  }));
  return groups.sort((a, b) => a.folded - b.folded || b.seconds - a.seconds);
}

/** Groups of the chosen time and labels: by program, or by the values of a label, each with the libraries that its
 *  processes spent time in. The list of builds knows sums of all time only. */
async function chosenGroups(builds, state, signal) {
  const byId = new Map(builds.map((b) => [b.build_id, b]));
  const first = format.least(builds.map((b) => Date.parse(b.first_seen)).filter(Number.isFinite));
  const part = async (match) =>
    [...(await chosen(state, match, first, signal))].flatMap(([id, load]) => {
      const seconds = load.seconds.reduce((a, b) => a + b, 0);
      const { calls, calls_str, processes_started, processes_started_str } = load;
      const sums = { seconds, seconds_str: undefined, calls, calls_str, processes_started, processes_started_str };
      const ran = seconds > 0 || calls > 0 || (byId.get(id)?.is_program && processes_started > 0);
      return byId.has(id) && ran ? [{ ...byId.get(id), ...sums, load }] : [];
    });
  const label = state.split;
  if (!label) return groupsOf(await part(state.match));
  const { rows } = await api.rows(api.valuesUrl(label, undefined, 1000), 20000, signal);
  const named = [...new Set(rows.map((r) => r.value))].filter(Boolean);
  const values = [...named.slice(0, Math.max(VALUES_MOST, Number(state.nodes) || 0)), ""];
  const groups = values.map(async (value) => {
    const match = [...state.match, equals(label, value)];
    const list = (await part(match)).sort((a, b) => b.seconds - a.seconds);
    return { name: value || `no ${label}`, builds: list, label, match, folded: false, seconds: sum(list, "seconds") };
  });
  const found = (await Promise.all(groups)).filter((g) => g.builds.length);
  const all = found.map((g) => ({ ...g, last: newest(g.builds) })).sort((a, b) => b.seconds - a.seconds);
  return Object.assign(all, { values: named.length, left: named.length - values.length + 1 });
}

/** Rows of the table: a group, and below it its builds if it has several. */
function rowsOf(groups) {
  return groups.flatMap((group, g) => {
    const own = { group, builds: group.builds, build: group.last, key: String(g) };
    const below = group.builds.map((build) => ({ group, builds: [build], build, below: true }));
    return group.builds.length > 1 || group.folded || group.label ? [own, ...below] : [own];
  });
}

const rowName = ({ group, below, build }) =>
  group.label && !below
    ? group.name
    : below && !group.folded && !group.label
      ? format.brief(build.build_id)
      : format.base(build.name) || "?";

/** The name of a row; a group of several has a button that shows them. */
function nameCell(row, state, { open, toggle, live }, space) {
  const shown = open.has(row.group.name);
  const { group, build } = row;
  const { name, build_id: id } = build;
  const exact = row.builds.every((b) => b.exact);
  const reasons = [...new Set(row.builds.flatMap((b) => b.inexact_reasons ?? []))].join(", ");
  const own = {
    ...(group.label && !row.below ? { view: "functions" } : { build: id }),
    ...(group.label ? { match: group.match } : {}),
  };
  const link = { ...to(state, { ...another("report"), ...own }), tabIndex: -1, title: row.below ? name : group.name };
  const label = `${shown ? "▾" : "▸"} ${format.count(group.builds.length)}`;
  const several = !row.below && (group.builds.length > 1 || group.folded || group.label);
  const running = !row.below && !group.folded && group.builds.some((b) => live.has(b.build_id));
  const chips = (several ? CHIP : 0) + (running ? CHIP : 0) + (exact ? 0 : MARK) + (row.below ? MARK : 0);
  const about = format.several(group.builds.length, "build", "builds");
  const props = { class: "chip", tabIndex: -1, "aria-expanded": String(shown), "aria-label": about, title: about };
  return [
    row.below ? el("span.indent") : null,
    group.folded && !row.below ? LIBRARIES : el("a", link, fitted(rowName(row), space - chips)),
    running ? el("span.chip.live", "live") : null,
    exact ? null : el("abbr.inexact", { title: `not exact: ${reasons}` }, " ≈"),
    several ? button(label, () => toggle(group), props) : null,
  ];
}

/** The first of several texts, and how many others there are; all of them on hover. */
const words = ([first, ...others]) => {
  const more = others.length ? ` +${others.length}` : "";
  return el("span", { title: [first, ...others].join(", ") }, first ? first + more : "–");
};

const COUNTED = "calls of functions in these builds; a report has those of addresses outside all builds, too";
const DAYS = "in the last 24 hours";
const HOSTS = "the most machines that sent the same service and version in one hour of the last day";

/** Columns that are known from the list of builds. Libraries stand last in every order. */
function listColumns(total) {
  const seconds = (row) => sum(row.builds, "seconds");
  const share = (row) => (total > 0 ? (100 * seconds(row)) / total : 0);
  const of = (key, title, value, more) =>
    numbers(key, title, { value: ({ group }) => (group.folded ? Number.NaN : value(group)), ...more });
  const number = (field) => (row) => {
    const all = sum(field === "calls" ? row.builds : programsOf(row.builds), field);
    if (field === "calls" && all === 0 && row.builds.some((b) => b.inexact_reasons?.includes("sampled")))
      return el("span", { title: "calls were not counted" }, "–");
    return row.group.folded && !row.below ? "" : el("span", { title: format.count(all) }, format.short(all));
  };
  const shareCell = (row) => bar(share(row) > 0 ? format.percent(share(row), ROUGH) : "0 %", share(row));
  const shareLook = {
    slim: innerWidth < BESIDE ? 5.9 : 7.3,
    width: 9.6,
    bars: true,
    hint: "time in its own code, as a share of all builds",
  };
  const time = (row) => format.seconds(seconds(row), ROUGH);
  const own = { width: 6, hint: "in its own code; libraries have their own rows" };
  const seen = (row) => ago(row.build.last_seen);
  const calls = { cell: number("calls"), width: 5, rare: 4, hint: COUNTED };
  const processes = { cell: number("processes_started"), rare: 5 };
  return {
    share: of("share", innerWidth < BESIDE ? "CPU" : "CPU share", (g) => g.seconds, { cell: shareCell, ...shareLook }),
    seconds: of("seconds", "CPU time", (g) => g.seconds, { cell: time, ...own }),
    calls: of("calls", "Calls", (g) => sum(g.builds, "calls"), calls),
    processes: of("processes", "Processes", (g) => sum(programsOf(g.builds), "processes_started"), processes),
    last: of("last", "Last seen", (g) => Date.parse(g.last.last_seen) || 0, { cell: seen, width: 8.8, rare: 2 }),
  };
}

/** Columns that are asked for when a row is in sight; there is no order by them. */
function dayColumns(narrowed) {
  const hint = narrowed ? "in the chosen time" : DAYS;
  const day = (row) => (row.day ??= dayOf(row.builds));
  const of = (key, title, width, show, more) => {
    const cell = (row) => (row.group.folded && !row.below ? "" : filled(day(row), show));
    return column(key, title, { cell, hint, width, still: true, ...more });
  };
  const hosts = (d) => el("span", { title: HOSTS }, d.hosts ? `${d.least ? "≥ " : ""}${format.count(d.hosts)}` : "–");
  const wide = innerWidth < NARROW ? 6 : 7.6;
  return {
    load: of("load", narrowed ? "Trend" : "Last day", wide, (d) => spark(d.load, undefined, d.marks), {
      numeric: true,
    }),
    service: of("service", "Service", 9, (d) => words(d.services), { rare: 3 }),
    version: of("version", "Version", 7.3, (d) => words(d.versions), { rare: 1 }),
    hosts: of("hosts", "Hosts", 4.6, hosts, { numeric: true, rare: 3 }),
  };
}

function columns(state, view) {
  const nameOf = (row, space) => nameCell(row, state, view, space);
  const title = state.split ? state.split.replace(/^./, (c) => c.toUpperCase()) : "Program";
  const value = ({ group }) => (group.folded ? "\uffff" : group.name);
  const name = column("name", title, { value, cell: nameOf });
  const { share, seconds, calls, processes, last } = listColumns(view.total);
  const { load, service, version, hosts } = dayColumns(view.narrowed);
  if (innerWidth < NARROW) return [name, load, share];
  const several = ({ group, below }) => !below && !group.folded && group.builds.length > 1;
  const changed = (row) => (several(row) ? changeLink(row.group, view.compared.get(row.group), state) : "");
  const hint = "what changed most in the newest build, compared with the one before";
  const change = column("change", "Newest build", { cell: changed, hint, width: 17.2, still: true });
  const compared = view.compared.size ? [change] : [];
  const all = [name, ...compared, version, share, seconds, load, service, hosts, calls, processes, last];
  return all.filter((c) => c.key !== state.split);
}

/** What to do when there is nothing yet. */
function empty(main) {
  const send = el("pre", el("code", "profctl upload -e ./program gmon.out"));
  const live = el("pre", el("code", "profctl run ./program"));
  const first = [
    "No profiles stored yet. Compile a program with ",
    el("code", "-pg"),
    ", run it, and send its gmon.out:",
  ];
  replace(main, el("h1", "Overview"), el("p", first), send, el("p", "Or count while it runs:"), live);
}

/** What the rows are: programs, or values of a label. */
function grouping(state, names) {
  const all = [...new Set(["", "service", ...names])].map((name) => [name, name || "program"]);
  const change = (split) => go({ split, nodes: "", open: "", row: "", top: "", sort: "", dir: "" });
  return labelled("By", choice({ id: "grouping" }, all, state.split, change));
}

/** One sentence on everything. */
function headline(builds, groups) {
  const programs = groups.filter((g) => !g.folded);
  if (programs[0]?.label) {
    const count = format.several(programs.length, `value of ${programs[0].label}`, `values of ${programs[0].label}`);
    return el("p.headline", `${count}, ${format.seconds(sum(builds, "seconds"))} of CPU time.`);
  }
  const parts = [
    format.several(programs.length, "program", "programs"),
    format.several(programs.flatMap((g) => g.builds).length, "build", "builds"),
    `${format.seconds(sum(builds, "seconds"))} of CPU time`,
    format.several(sum(builds, "calls"), "call", "calls"),
  ];
  return el("p.headline", { title: COUNTED }, `${parts.join(", ")}.`);
}

/** Says how many values of the label were not asked for, and asks for them on a click. */
function valuesLeft({ left, values }, state) {
  if (!(left > 0)) return null;
  const all = el("a", to(state, { nodes: String(values) }), `Show all ${format.count(values)}`);
  const hidden = `${format.count(left)} of ${format.count(values)} values of ${state.split} are not listed. `;
  return el("p.hint", hidden, all);
}

export async function draw(main, state, signal) {
  const { rows: builds, more } = await api.rows("api/v1/builds?limit=1000", 20000, signal);
  if (builds.length === 0) return empty(main);
  forget();
  const narrowed = Boolean(state.since || state.until || state.match.length || state.split);
  const [groups, names, processes] = await Promise.all([
    narrowed ? chosenGroups(builds, state, signal) : groupsOf(builds),
    api.labelNames(undefined, signal),
    api.json("api/v1/processes?limit=1000", signal).catch(() => ({ rows: [] })),
  ]);
  signal.throwIfAborted();
  const listed = groups.flatMap((g) => g.builds);
  const rows = rowsOf(groups);
  const view = {
    open: new Set(state.open.split("|").filter(Boolean).map(decodeURIComponent)),
    total: sum(listed, "seconds"),
    narrowed,
    live: new Set(processes.rows.map((r) => r.build_id)),
    compared: innerWidth < NARROW || state.split ? new Map() : comparisons(groups, state, signal),
  };
  const text = (row) => row.builds.map((b) => `${b.name} ${b.build_id}`).join(" ");
  const wanted = (filter) => {
    const shown = (row) => !row.below || view.open.has(row.group.name) || (filter && row.group.folded);
    return (row) => shown(row) && text(row).toLowerCase().includes(filter.toLowerCase());
  };
  const told = (_, left) => {
    const programs = left.filter((i) => !rows[i].below && !rows[i].group.folded).length;
    const all = groups.filter((g) => !g.folded).length;
    const nouns = state.split ? [`value of ${state.split}`, `values of ${state.split}`] : ["program", "programs"];
    say(`${programs} of ${format.several(all, ...nouns)}${more || groups.left > 0 ? " and more" : ""}`);
  };
  view.toggle = (group) => {
    if (!view.open.delete(group.name)) view.open.add(group.name);
    note(state, { open: [...view.open].map(encodeURIComponent).join("|") });
    apply(filter.value);
  };
  const open = ({ group, below, build }) => {
    if (group.folded && !below) view.toggle(group);
    else if (group.label && !below) go({ ...another("functions"), match: group.match });
    else go({ ...another("report"), build: build.build_id, match: group.match ?? state.match });
  };
  const about = { about: "Filter programs by name or build-id", hint: "Filter", label: "Programs", sort: "share" };
  const list = { ...about, wanted, told, columns: columns(state, view), rows, state, open };
  const { table, filter, apply, show } = listing(list);
  const choices = [grouping(state, names), timeMenu(state), labelsMenu(state), labelChips(state)];
  replace(
    main,
    el("div.toolbar", el("h1", "Overview"), filter, choices),
    headline(listed, groups),
    valuesLeft(groups, state),
    rows.length ? table.node : el("p.empty", "No upload has these labels in this time range."),
  );
  show();
  return undefined;
}
