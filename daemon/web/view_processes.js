// Processes that are counting now, with their rates, as the daemon sees them. The list is asked for again while it is
// looked at.
import * as api from "./api.js";
import { el, replace, say } from "./dom.js";
import * as format from "./format.js";
import { another, to, go } from "./state.js";
import { ago, column, filterField, fitted, listing, NARROW, numbers } from "./table.js";
import { labelChips, labelsMenu } from "./toolbar.js";

const AGAIN = 5000; // ms
const FEW = ["state", "persecond"]; // columns where there is little space
const STATES = {
  counting: "counting",
  paused: "paused, does not count",
  silent: "attached, no new counts at present",
  ended: "ended, its last counts are being stored",
};
let still = false; // the reader stopped the updates

const age = (s) =>
  s < 60
    ? `${s} s`
    : s < 3600
      ? `${Math.floor(s / 60)} min${s < 600 ? ` ${s % 60} s` : ""}`
      : s < 86400
        ? `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`
        : `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
const bytes = (n) => (n >= 1 << 20 ? `${(n / (1 << 20)).toFixed(1)} MiB` : `${Math.ceil(n / 1024)} KiB`);
const tags = (row) =>
  Object.entries(row.labels ?? {})
    .map(([k, v]) => `${k}=${v}`)
    .join(" ");

const FIRST = ["service", "version", "host"]; // of the labels, which have columns
const LETTER = 0.56; // rem

function nameCell({ build_id: build, name: path, exact, why }, state, space) {
  const text = fitted(format.base(path) || "?", space - (exact ? 0 : 20));
  const link = { ...to(state, { ...another("report"), build, match: [] }), tabIndex: -1, title: path };
  const title = `not exact${why ? `: ${why}` : ""}`;
  return [build ? el("a", link, text) : text, exact ? null : el("abbr.inexact", { title }, " ≈")];
}

function overhead({ overhead: share, overhead_below: below, ticks }) {
  if (share === null) return el("span", { title: "not known: too few ticks" }, "–");
  return below === null ? format.percent(100 * share, ticks) : `<${format.percent(Math.ceil(10000 * below) / 100)}`;
}

/** A column for each label: what tells processes apart leaves last. */
function labelColumns(rows) {
  const rank = (name) => (FIRST.indexOf(name) + 1 || FIRST.length + 1) - FIRST.length - 1;
  const names = [...new Set(rows.flatMap((row) => Object.keys(row.labels ?? {})))];
  names.sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  return names.map((name) => {
    const value = (row) => row.labels?.[name] ?? "";
    const letters = rows.reduce((most, row) => Math.max(most, value(row).length), name.length + 1);
    const cell = (row) => el("span", { title: value(row) }, value(row) || "–");
    const look = { width: Math.min(14, LETTER * letters + 1.5), rare: FIRST.includes(name) ? 1 : 5 };
    return column(`label-${name}`, name, { value, cell, ...look });
  });
}

/** The columns that say something of these rows. */
function columns(rows, state) {
  const pid = ({ pid: outside, pid_inside: inside }) => {
    const title = inside && inside !== outside ? `${inside} in its own PID namespace` : "";
    return el("span", { title }, String(outside));
  };
  const stateCell = ({ state: now, why }) =>
    el("span", { class: `state ${now}`, title: `${STATES[now] ?? now}${why ? `; ${why}` : ""}` }, now);
  const rate = ({ rate: now, rate_asked: asked, mode }) => {
    const change = asked && asked !== now ? ` → ${format.count(asked)}` : "";
    return `${format.count(now)}${change}${mode === "wall" ? " wall" : ""}`;
  };
  const calls = (row) => el("span", { title: format.exact(row, "calls") }, format.short(row.calls));
  const rateHint = "actual sampling rate, and requested rate; of CPU time or of elapsed time (wall)";
  const share = {
    value: (row) => row.overhead ?? Number.NaN,
    hint: "share of its ticks that were inside the collector, a rough estimate of the time spent counting",
  };
  const speed = {
    value: (row) => row.calls_per_second,
    cell: (row) => format.rate(row.calls_per_second),
    hint: "between the last two harvests",
  };
  const cpu = { value: (row) => row.cpu_seconds, cell: (row) => format.seconds(row.cpu_seconds) };
  const memory = { value: (row) => row.memory_bytes, cell: (row) => bytes(row.memory_bytes), hint: "of the counters" };
  const read = { value: (row) => Date.parse(row.harvested) || 0, cell: (row) => ago(row.harvested, "not yet") };
  const runs = { value: (row) => row.age_seconds, cell: (row) => age(row.age_seconds), width: 6.8, rare: 3 };
  const name = { value: (row) => format.base(row.name), cell: (row, space) => nameCell(row, state, space) };
  const all = [
    column("name", "Program", name),
    ...labelColumns(rows),
    numbers("pid", "Process", { cell: pid, width: 5.6 }),
    numbers("uid", "User", { cell: (row) => String(row.uid), width: 3.8 }),
    column("state", "State", { cell: stateCell, width: 6.8 }),
    numbers("rate", "Ticks/s", { cell: rate, width: 5.4, hint: rateHint, rare: 6 }),
    numbers("persecond", "Calls/s", { ...speed, width: 6 }),
    numbers("calls", "Calls", { cell: calls, width: 5.2, rare: 4 }),
    numbers("cpu", "CPU time", { ...cpu, width: 6 }),
    numbers("overhead", "Overhead", { ...share, cell: overhead, width: 6.4 }),
    numbers("age", "Runs for", runs),
    numbers("memory", "Memory", { ...memory, width: 5.4, rare: 7 }),
    numbers("harvested", "Last read", { ...read, width: 8.4, rare: 5 }),
  ];
  return rows.every((r) => r.uid === rows[0].uid) ? all.filter((c) => c.key !== "uid") : all;
}

const ask = (state, signal) =>
  api.rows(`api/v1/processes?${api.query({ match: state.match, limit: "1000" })}`, 20000, signal);

function show(state, answer, box) {
  const { rows, more } = answer;
  const sum = (field) => rows.reduce((all, r) => all + r[field], 0);
  let spoken = false; // an update is not announced
  const told = (_, shown) => {
    const count = `${format.count(shown.length)} of ${format.count(rows.length)}${more ? " and more" : ""} processes`;
    if (spoken) say(count);
  };
  const list = listing({
    text: (row) => `${row.name} ${row.pid} ${row.state} ${tags(row)}`,
    told,
    few: FEW,
    label: "Live processes",
    columns: columns(rows, state),
    rows,
    state,
    sort: "persecond",
    open: ({ build_id: build }) => build && go({ ...another("report"), build, match: [] }),
  });
  const { table } = list;
  box.apply = (text) => {
    spoken = true;
    list.apply(text);
  };
  list.show();
  const hidden = table.all.filter((c) => c.key.startsWith("label-") && !table.columns.includes(c));
  const rest = `Labels that have no space here: ${hidden.map((c) => c.title).join(", ")}.`;
  const focused =
    box.querySelector(".scroll")?.contains(document.activeElement) &&
    document.activeElement.getAttribute("role") === "grid";
  const aside = box.querySelector(".scroll")?.scrollLeft ?? 0;
  replace(
    box,
    el(
      "p.headline",
      { id: "live-sum" },
      `${format.several(rows.length, "process", "processes")}, ${format.rate(sum("calls_per_second"))} calls/s, `,
      `${format.count(rows.filter((r) => r.state === "counting").length)} counting.`,
    ),
    table.node,
    hidden.length && innerWidth >= NARROW ? el("p.hint", rest) : null,
  );
  table.restore();
  table.node.scrollLeft = aside;
  if (focused) table.table.focus({ preventScroll: true });
}

export async function draw(main, state, signal) {
  const answer = await ask(state, signal);
  const box = el("div");
  const stop = el("button", { id: "still", type: "button", onclick: () => hold(!still) });
  const since = el("span.hint", { role: "note" });
  const hold = (wanted) => {
    const resumed = still && !wanted;
    still = wanted;
    replace(stop, still ? "Resume" : "Pause");
    stop.setAttribute("aria-label", still ? "Resume updates" : "Pause updates");
    replace(since, still ? `Paused at ${format.clock(new Date().toISOString())}` : "");
    if (resumed) refresh();
  };
  const about = "Filter processes: program, process, state or label";
  const filter = filterField({ state }, about, "Filter", (text) => box.apply?.(text));
  const none = () =>
    state.match.length
      ? el("p.empty", "No live process has these labels.")
      : [el("p.empty", "No live processes. Start one with:"), el("pre", el("code", "profctl run ./program"))];
  const refresh = async () => {
    try {
      put(await ask(state, signal));
    } catch (error) {
      if (error.name !== "AbortError") say(`Not up to date: ${error.message}`);
    }
  };
  const put = (next) => (next.rows.length ? show(state, next, box) : replace(box, none()));
  const pause = el("span.bar", stop, since);
  replace(
    main,
    el("div.toolbar", el("h1", "Live processes"), filter, pause, labelsMenu(state), labelChips(state)),
    box,
  );
  hold(still);
  put(answer);
  const again = async () => {
    if (signal.aborted) return;
    if (!still && !document.hidden && getSelection().isCollapsed) await refresh();
    setTimeout(again, AGAIN);
  };
  setTimeout(again, AGAIN);
}
