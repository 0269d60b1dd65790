// Processes that are counting now, with their rates, as the daemon sees them. The list is asked for again while it is
// looked at.
import * as api from "./api.js";
import { el, replace, say } from "./dom.js";
import * as format from "./format.js";
import { another, to, go } from "./state.js";
import { ago, column, filterField, fitted, listing, NARROW, numbers } from "./table.js";
import { bar } from "./report_columns.js";
import { line } from "./overview_day.js";
import { labelChips, labelsMenu } from "./toolbar.js";

const AGAIN = 5000; // ms
const FEW = ["used", "persecond"]; // columns where there is little space
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

const percent = (value) => format.percent(value, ROUND);
const FIRST = ["service", "version", "host"]; // of the labels, which have columns
const LETTER = 0.56; // rem
const ROUND = 100; // ticks of a share that is shown with two digits
const PID = 56; // pixels of a number of a process behind a name
const READINGS = 24; // that are kept of each process, while the page is open

const readings = new Map(); // by process: {at, cpu, rate}, as the page has seen them

/** Keeps what is new in an answer, and forgets who is no longer in it. */
function keep(rows) {
  const gone = new Set(readings.keys());
  for (const { instance, harvested, cpu_seconds: cpu, calls_per_second: rate } of rows) {
    gone.delete(instance);
    const all = readings.get(instance) ?? readings.set(instance, []).get(instance);
    const at = Date.parse(harvested);
    if (at > (all.at(-1)?.at ?? 0)) all.push({ at, cpu, rate });
    if (all.length > READINGS) all.shift();
  }
  for (const instance of gone) readings.delete(instance);
}

/** CPU time in each second, between the first and the last reading that are kept, or since the start: {share, over}. */
function load({ instance, cpu_seconds: cpu, age_seconds: age }) {
  const all = readings.get(instance) ?? [];
  const over = all.length > 1 ? (all.at(-1).at - all[0].at) / 1000 : 0;
  return over > 0 ? { share: (all.at(-1).cpu - all[0].cpu) / over, over } : { share: cpu / Math.max(1, age), over: 0 };
}

/** Where no tick fell, less than that of one tick. */
function loadText({ share, over }, { rate }) {
  return share > 0 || !over || !rate ? percent(100 * share) : `<${percent(Math.ceil(1e4 / (rate * over)) / 100)}`;
}

/** A program; where it has no column, its process tells it from others. */
function nameCell({ build_id: build, name: path, pid }, state, space) {
  const slim = innerWidth < NARROW;
  const text = fitted(format.base(path) || "?", slim ? space - PID : space);
  const link = { ...to(state, { ...another("report"), build, match: [] }), tabIndex: -1, title: path };
  const other = slim ? el("span.hint", String(pid)) : null;
  return [build ? el("a", link, text) : text, other];
}

function overhead({ overhead: share, overhead_below: below, ticks }) {
  if (share === null) return el("span", { title: "not known: too few ticks" }, "–");
  return below === null ? format.percent(100 * share, ticks) : `<${format.percent(Math.ceil(10000 * below) / 100)}`;
}

/** Whether all processes have one value of a label, so that it tells none apart. */
const common = (rows, name) => rows.length > 1 && new Set(rows.map((row) => row.labels?.[name])).size === 1;

/** A column for each label: what tells processes apart leaves last. */
function labelColumns(rows) {
  const rank = (name) => (FIRST.indexOf(name) + 1 || FIRST.length + 1) - FIRST.length - 1;
  const names = [...new Set(rows.flatMap((row) => Object.keys(row.labels ?? {})))];
  names.sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  return names.map((name) => {
    const value = (row) => row.labels?.[name] ?? "";
    const letters = rows.reduce((most, row) => Math.max(most, value(row).length), name.length + 1);
    const cell = (row) => el("span", { title: value(row) }, value(row) || "–");
    const rare = FIRST.includes(name) && !common(rows, name) ? 1 : 5;
    const look = { width: Math.min(14, LETTER * letters + 1.5), rare };
    return column(`label-${name}`, name, { value, cell, ...look });
  });
}

/** The columns that say something of these rows. */
function columns(rows, state) {
  const pid = ({ pid: outside, pid_inside: inside }) => {
    const title = inside && inside !== outside ? `${inside} in its own PID namespace` : "";
    return el("span", { title }, String(outside));
  };
  const stateCell = ({ state: now, exact, why }) => {
    const about = `${STATES[now] ?? now}${exact ? "" : `; not exact${why ? `: ${why}` : ""}`}`;
    return el("span", { class: now === "counting" ? "" : `state ${now}`, title: about }, now, exact ? "" : ", inexact");
  };
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
  const usedCell = (row) => {
    const { share, over } = load(row);
    const text = loadText({ share, over }, row);
    const when = over ? `in the last ${format.several(Math.round(over), "second", "seconds")}` : "since it started";
    const about = `${text} of one core ${when}; ${format.seconds(row.cpu_seconds)} of CPU time in all`;
    return bar(text, (100 * share) / busiest, about);
  };
  const busiest = format.largest(rows.map((row) => load(row).share)) || 1;
  const used = { value: (row) => load(row).share, cell: usedCell, bars: true, width: 8.6, slim: 5.6 };
  const usedHint = "part of one core, while this page is open; at first, since the start. The bar: of the busiest one";
  const trend = ({ instance }) => {
    const rates = (readings.get(instance) ?? []).map(({ rate: now }) => now);
    const [least, most] = [format.least(rates), format.largest(rates)].map(format.rate);
    return rates.length > 1 ? line(rates, `${least} to ${most} calls per second in ${rates.length} readings`) : "";
  };
  const trendHint = "calls per second while this page is open";
  const memory = { value: (row) => row.memory_bytes, cell: (row) => bytes(row.memory_bytes), hint: "of the counters" };
  const read = { value: (row) => Date.parse(row.harvested) || 0, cell: (row) => ago(row.harvested, "not yet") };
  const runs = { value: (row) => row.age_seconds, cell: (row) => age(row.age_seconds), width: 6.8, rare: 3 };
  const name = { value: (row) => format.base(row.name), cell: (row, space) => nameCell(row, state, space) };
  const all = [
    column("name", "Program", name),
    ...labelColumns(rows),
    numbers("pid", "Process", { cell: pid, width: 5.6 }),
    numbers("uid", "User", { cell: (row) => String(row.uid), width: 3.8 }),
    column("state", "State", { cell: stateCell, width: rows.every((row) => row.exact) ? 6.8 : 10 }),
    numbers("used", "CPU", { ...used, hint: usedHint }),
    numbers("rate", "Ticks/s", { cell: rate, width: 5.4, hint: rateHint, rare: 6 }),
    numbers("persecond", "Calls/s", { ...speed, width: 6 }),
    column("trend", "Trend", { still: true, cell: trend, width: 7.4, rare: 2, hint: trendHint }),
    numbers("calls", "Calls", { cell: calls, width: 5.2, rare: 4 }),
    numbers("overhead", "Overhead", { ...share, cell: overhead, width: 6.4 }),
    numbers("age", "Runs for", runs),
    numbers("memory", "Memory", { ...memory, width: 5.4, rare: 7 }),
    numbers("harvested", "Last read", { ...read, width: 8.4, rare: 5 }),
  ];
  return rows.every((r) => r.uid === rows[0].uid) ? all.filter((c) => c.key !== "uid") : all;
}

/** How many there are, what they do, and which program does most of it. */
function headline(rows) {
  const programs = Map.groupBy(rows, (row) => format.base(row.name) || "?");
  const sum = (list, of) => list.reduce((all, row) => all + of(row), 0);
  const speed = (row) => row.calls_per_second;
  const all = sum(rows, speed);
  const [name, most] = [...programs].reduce((a, b) => (sum(b[1], speed) > sum(a[1], speed) ? b : a));
  const part = `; ${percent((100 * sum(most, speed)) / all)} of them in ${name}`;
  const cores = format.rate(sum(rows, (row) => load(row).share));
  const use = rows.every((row) => load(row).over > 0) ? "They use" : "On average they use";
  const counting = rows.filter((row) => row.state === "counting").length;
  const rest = counting < rows.length ? ` ${format.several(rows.length - counting, "does", "do")} not count now.` : "";
  return [
    el("strong", `${format.several(rows.length, "process", "processes")}: ${format.rate(all)} calls/s`),
    `${all > 0 && programs.size > 1 ? part : ""}. ${use} ${cores} CPU cores.${rest}`,
  ];
}

const ask = (state, signal) =>
  api.rows(`api/v1/processes?${api.query({ match: state.match, limit: "1000" })}`, 20000, signal);

function show(state, answer, box) {
  const { rows, more } = answer;
  keep(rows);
  let spoken = false; // an update is not announced
  const told = (_, shown) => {
    const all = `${format.several(rows.length, "process", "processes")}${more ? " and more" : ""}`;
    if (spoken) say(shown.length < rows.length ? `${format.count(shown.length)} of ${all}` : all);
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
  const [same, other] = [true, false].map((is) => hidden.filter((c) => common(rows, c.title) === is));
  const rest = [
    same.length ? `All have ${same.map((c) => `${c.title}=${c.value(rows[0])}`).join(", ")}. ` : "",
    other.length ? `Labels that have no space here: ${other.map((c) => c.title).join(", ")}.` : "",
  ];
  const focused =
    box.querySelector(".scroll")?.contains(document.activeElement) &&
    document.activeElement.getAttribute("role") === "grid";
  const aside = box.querySelector(".scroll")?.scrollLeft ?? 0;
  replace(
    box,
    el("p.answer", { id: "live-sum" }, headline(rows)),
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
