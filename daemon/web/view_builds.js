// The start page: programs with their versions, share of CPU time, trend and machines; builds below their program.
import * as api from "./api.js";
import { el, replace, say } from "./dom.js";
import * as format from "./format.js";
import { dayOf, forget, later, spark } from "./overview_day.js";
import { changeLink, comparisons } from "./overview_change.js";
import { another, go, note, to } from "./state.js";
import { filterField, Table } from "./table.js";
import { bar, NARROW } from "./view_report.js";

const LIBRARIES = "Libraries";
const ROUGH = 200; // times have the digits of that number of ticks: the list does not know how many there were

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

/** Rows of the table: a group, and below it its builds if it has several. */
function rowsOf(groups) {
  return groups.flatMap((group, g) => {
    const own = { group, builds: group.builds, build: group.last, key: String(g) };
    const below = group.builds.map((build) => ({ group, builds: [build], build, below: true }));
    return group.builds.length > 1 || group.folded ? [own, ...below] : [own];
  });
}

/** The version of the newest build beside a name, where there is no column of versions. */
function versionChip(row) {
  const chip = (list) => {
    const text = list.length > 2 ? format.several(list.length, "version", "versions") : list.join(", ");
    return el("span", { class: "chip", title: list.join(", ") }, text);
  };
  return later(dayOf([row.build]), ({ versions }) => (versions.length ? chip(versions) : []));
}

/** The name of a row; a group of several has a button that shows them. */
function nameCell(row, state, shown, toggle) {
  const { group, build } = row;
  const { name, build_id: id } = build;
  const exact = row.builds.every((b) => b.exact);
  const reasons = [...new Set(row.builds.flatMap((b) => b.inexact_reasons ?? []))].join(", ");
  const link = (text) =>
    el("a", { ...to(state, { ...another("report"), build: id }), tabIndex: -1, title: name }, text);
  const label = `${shown ? "▾" : "▸"} ${format.count(group.builds.length)}`;
  const several = !row.below && (group.builds.length > 1 || group.folded);
  const about = format.several(group.builds.length, "build", "builds");
  const props = {
    type: "button",
    class: "chip",
    tabIndex: -1,
    "aria-expanded": String(shown),
    "aria-label": about,
    title: about,
  };
  return [
    row.below ? el("span", { class: "indent" }) : null,
    group.folded && !row.below
      ? LIBRARIES
      : link(row.below && !group.folded ? format.brief(id) : format.base(name) || "?"),
    exact ? null : el("abbr", { class: "inexact", title: `not exact: ${reasons}` }, " ≈"),
    group.folded || innerWidth >= NARROW ? null : versionChip(row),
    several ? el("button", { ...props, onclick: () => toggle(group) }, label) : null,
  ];
}

/** Texts side by side; all of them on hover. */
const words = (list) => el("span", { title: list.join(", ") }, list.join(", ") || "–");

const DAYS = "of the last day";
const HOSTS = "the most machines of one hour of the last day that sent the same service and version";

/** Columns that are known from the list of builds. Libraries stand last in every order. */
function listColumns(rows, total) {
  const seconds = (row) => sum(row.builds, "seconds");
  const share = (i) => (total > 0 ? (100 * seconds(rows[i])) / total : 0);
  const isFold = (i) => rows[i].group.folded && !rows[i].below;
  const numeric = (value) => ({
    numeric: true,
    value: (i) => (rows[i].group.folded ? Number.NaN : value(rows[i].group)),
  });
  const number = (key, title, field) => ({
    key,
    title,
    ...numeric((group) => sum(group.builds, field)),
    cell: (i) => {
      const all = sum(rows[i].builds, field);
      if (field === "calls" && all === 0 && rows[i].builds.some((b) => b.inexact_reasons?.includes("sampled")))
        return el("span", { title: "calls were not counted" }, "–");
      return isFold(i) ? "" : el("span", { title: format.count(all) }, format.short(all));
    },
  });
  const time = ({ last_seen: seen }) =>
    el("time", { dateTime: seen || "", title: format.both(seen) }, format.ago(seen));
  return {
    share: {
      key: "share",
      title: innerWidth < NARROW ? "CPU" : "CPU share",
      slim: 5.4,
      hint: "time in its own code, of that of all builds",
      width: 9.6,
      bars: true,
      ...numeric((group) => group.seconds),
      cell: (i) => bar(share(i) > 0 ? format.percent(share(i)) : "0 %", share(i)),
    },
    seconds: {
      key: "seconds",
      title: "CPU time",
      width: 6,
      hint: "in its own code; libraries have their own rows",
      ...numeric((group) => group.seconds),
      cell: (i) => format.seconds(seconds(rows[i]), ROUGH),
    },
    calls: { ...number("calls", "Calls", "calls"), width: 5 },
    processes: number("processes", "Processes", "processes_started"),
    last: {
      key: "last",
      title: "Last seen",
      width: 8.8,
      ...numeric((group) => Date.parse(group.last.last_seen) || 0),
      cell: (i) => time(rows[i].build),
    },
  };
}

/** Columns that are asked for when a row is in sight; there is no order by them. */
function dayColumns(rows) {
  const day = (i) => (rows[i].day ??= dayOf(rows[i].builds));
  const of = (show) => (i) => (rows[i].group.folded && !rows[i].below ? "" : later(day(i), show));
  const hosts = (d) => el("span", { title: HOSTS }, d.hosts ? `${d.least ? "≥ " : ""}${format.count(d.hosts)}` : "–");
  const column = (key, title, width, show, numeric) => ({
    key,
    title,
    hint: DAYS,
    width,
    numeric,
    still: true,
    cell: of(show),
  });
  return {
    load: column("load", "Last day", innerWidth < NARROW ? 5.6 : 7.6, spark, true),
    service: column("service", "Service", 7.4, (d) => words(d.services)),
    version: column("version", "Version", 7.3, (d) => words(d.versions)),
    hosts: column("hosts", "Hosts", 4.6, hosts, true),
  };
}

/** Of programs with several builds: what changed in the newest one. */
function changeColumn(rows, state, compared) {
  const several = ({ group, below }) => !below && !group.folded && group.builds.length > 1;
  return {
    key: "change",
    title: "Newest build",
    hint: "what changed most, compared with the build before",
    width: 9.8,
    still: true,
    cell: (i) => (several(rows[i]) ? changeLink(rows[i].group, compared.get(rows[i].group), state) : ""),
  };
}

function columns(rows, state, view) {
  const name = {
    key: "name",
    title: "Program",
    value: (i) => (rows[i].group.folded ? "\uffff" : rows[i].group.name),
    cell: (i) => nameCell(rows[i], state, view.open.has(rows[i].group.name), view.toggle),
  };
  const { share, seconds, calls, processes, last } = listColumns(rows, view.total);
  const { load, service, version, hosts } = dayColumns(rows);
  if (innerWidth < NARROW) return [name, load, share];
  const change = view.compared.size ? [changeColumn(rows, state, view.compared)] : [];
  return [name, ...change, version, share, seconds, load, service, hosts, calls, processes, last];
}

/** What to do when there is nothing yet. */
function empty(main) {
  const send = el("pre", {}, el("code", {}, "profctl upload -e ./program gmon.out"));
  const live = el("pre", {}, el("code", {}, "profctl run ./program"));
  const first = [
    "No profiles stored yet. Compile a program with ",
    el("code", {}, "-pg"),
    ", run it, and send its gmon.out:",
  ];
  replace(main, el("h1", {}, "Overview"), el("p", {}, first), send, el("p", {}, "Or count while it runs:"), live);
}

/** One sentence on everything. */
function headline(builds, groups) {
  const programs = groups.filter((g) => !g.folded);
  const parts = [
    format.several(programs.length, "program", "programs"),
    format.several(
      sum(
        programs.map((g) => ({ n: g.builds.length })),
        "n",
      ),
      "build",
      "builds",
    ),
    `${format.seconds(sum(builds, "seconds"))} of CPU time`,
    format.several(sum(builds, "calls"), "call", "calls"),
  ];
  return el("p", { class: "headline" }, `${parts.join(", ")}.`);
}

export async function draw(main, state, signal) {
  const { rows: builds, more } = await api.rows("api/v1/builds?limit=1000", 20000, signal);
  if (builds.length === 0) return empty(main);
  forget();
  const groups = groupsOf(builds);
  const rows = rowsOf(groups);
  const view = {
    open: new Set(state.open.split("|").filter(Boolean).map(decodeURIComponent)),
    total: sum(builds, "seconds"),
    compared: innerWidth < NARROW ? new Map() : comparisons(groups, signal),
  };
  const text = (row) =>
    row.builds
      .map((b) => `${b.name} ${b.build_id}`)
      .join(" ")
      .toLowerCase();
  const apply = (filter) => {
    const wanted = filter.toLowerCase();
    const shown = (row) => !row.below || view.open.has(row.group.name) || (wanted && row.group.folded);
    table.filter((i) => shown(rows[i]) && text(rows[i]).includes(wanted));
    const programs = table.rows.filter((i) => !rows[i].below && !rows[i].group.folded).length;
    const all = groups.filter((g) => !g.folded).length;
    say(`${programs} of ${format.several(all, "program", "programs")}${more ? " and more" : ""}`);
  };
  view.toggle = (group) => {
    if (!view.open.delete(group.name)) view.open.add(group.name);
    note(state, { open: [...view.open].map(encodeURIComponent).join("|") });
    apply(filter.value);
    table.from = -1;
    table.draw();
  };
  const open = (i) => {
    const { group, below, build } = rows[i];
    if (group.folded && !below) view.toggle(group);
    else go({ ...another("report"), build: build.build_id });
  };
  const table = new Table({
    label: "Programs",
    columns: columns(rows, state, view),
    count: rows.length,
    state,
    sort: "share",
    tall: true,
    open,
  });
  const filter = filterField(
    () => state,
    "Filter programs by name or build-id",
    "Filter",
    apply,
    () => table,
  );
  replace(
    main,
    el("div", { class: "toolbar" }, el("h1", {}, "Overview"), filter),
    headline(builds, groups),
    table.node,
  );
  table.show(
    table.all.map((c) => c.key),
    innerWidth < NARROW,
  );
  apply(state.q);
  table.restore();
  return undefined;
}
