// Processes that are counting now, with their rates, as the daemon sees them. The list is asked for again while it is
// looked at.
import * as api from "./api.js";
import { el, replace, say } from "./dom.js";
import * as format from "./format.js";
import { another, to, go } from "./state.js";
import { filterField, Table } from "./table.js";
import { labelChips, labelsMenu } from "./toolbar.js";
import { matcher, NARROW } from "./view_report.js";

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

const WIDE = 1600; // pixels of a window with space for rare columns

/** The columns that say something of these rows in a window of that width. */
function columns(rows, state) {
  const rare = [rows.every((r) => r.uid === rows[0].uid) ? "uid" : "", innerWidth < WIDE ? "memory" : ""];
  return allColumns(rows, state).filter((c) => !rare.includes(c.key));
}

const allColumns = (rows, state) => [
  {
    key: "name",
    title: "Program",
    value: (i) => format.base(rows[i].name),
    cell: (i) => [
      rows[i].build_id
        ? el(
            "a",
            {
              ...to(state, { ...another("report"), build: rows[i].build_id, match: [] }),
              tabIndex: -1,
              title: rows[i].name,
            },
            format.base(rows[i].name) || "?",
          )
        : format.base(rows[i].name) || "?",
      rows[i].exact
        ? null
        : el("abbr", { class: "inexact", title: `not exact${rows[i].why ? `: ${rows[i].why}` : ""}` }, " ≈"),
    ],
  },
  {
    key: "pid",
    width: 5,
    title: "Process",
    numeric: true,
    value: (i) => rows[i].pid,
    cell: (i) =>
      el(
        "span",
        {
          title:
            rows[i].pid_inside && rows[i].pid_inside !== rows[i].pid
              ? `${rows[i].pid_inside} in its own PID namespace`
              : "",
        },
        String(rows[i].pid),
      ),
  },
  { key: "uid", width: 3.6, title: "User", numeric: true, value: (i) => rows[i].uid, cell: (i) => String(rows[i].uid) },
  {
    key: "state",
    title: "State",
    width: 6.8,
    value: (i) => rows[i].state,
    cell: (i) =>
      el(
        "span",
        {
          class: `state ${rows[i].state}`,
          title: `${STATES[rows[i].state] ?? rows[i].state}${rows[i].why ? `; ${rows[i].why}` : ""}`,
        },
        rows[i].state,
      ),
  },
  {
    key: "rate",
    width: 5.2,
    title: "Ticks/s",
    hint: "actual sampling rate, and requested rate; of CPU time or of elapsed time (wall)",
    numeric: true,
    value: (i) => rows[i].rate,
    cell: (i) => {
      const { rate, rate_asked: asked, mode } = rows[i];
      const change = asked && asked !== rate ? ` → ${format.count(asked)}` : "";
      return `${format.count(rate)}${change}${mode === "wall" ? " wall" : ""}`;
    },
  },
  {
    key: "persecond",
    width: 6,
    title: "Calls/s",
    hint: "between the last two harvests",
    numeric: true,
    value: (i) => rows[i].calls_per_second,
    cell: (i) => format.rate(rows[i].calls_per_second),
  },
  {
    key: "calls",
    width: 5.2,
    title: "Calls",
    numeric: true,
    value: (i) => rows[i].calls,
    cell: (i) => el("span", { title: format.exact(rows[i], "calls") }, format.short(rows[i].calls)),
  },
  {
    key: "cpu",
    width: 5.6,
    title: "CPU time",
    numeric: true,
    value: (i) => rows[i].cpu_seconds,
    cell: (i) => format.seconds(rows[i].cpu_seconds),
  },
  {
    key: "overhead",
    width: 6.2,
    title: "Overhead",
    hint: "share of its ticks that were inside the collector, a rough estimate of the time spent counting",
    numeric: true,
    value: (i) => rows[i].overhead ?? Number.NaN,
    cell: (i) =>
      rows[i].overhead === null
        ? el("span", { title: "not known: too few ticks" }, "–")
        : rows[i].overhead_below === null
          ? format.percent(100 * rows[i].overhead, rows[i].ticks)
          : `<${format.percent(Math.ceil(10000 * rows[i].overhead_below) / 100)}`,
  },
  {
    key: "age",
    width: 6.8,
    title: "Runs for",
    numeric: true,
    value: (i) => rows[i].age_seconds,
    cell: (i) => age(rows[i].age_seconds),
  },
  {
    key: "memory",
    width: 5.4,
    title: "Memory",
    hint: "of the counters",
    numeric: true,
    value: (i) => rows[i].memory_bytes,
    cell: (i) => bytes(rows[i].memory_bytes),
  },
  {
    key: "harvested",
    width: 7.8,
    title: "Last read",
    numeric: true,
    value: (i) => Date.parse(rows[i].harvested) || 0,
    cell: (i) =>
      rows[i].harvested
        ? el(
            "time",
            { dateTime: rows[i].harvested, title: format.both(rows[i].harvested) },
            format.ago(rows[i].harvested),
          )
        : "not yet",
  },
  {
    key: "labels",
    width: 19.8,
    title: "Labels",
    value: (i) => tags(rows[i]),
    cell: (i) => el("span", { title: tags(rows[i]) }, tags(rows[i])),
  },
];

const ask = (state, signal) =>
  api.rows(`api/v1/processes?${api.query({ match: state.match, limit: "1000" })}`, 20000, signal);

function show(state, answer, box) {
  const { rows, more } = answer;
  const sum = (field) => rows.reduce((all, r) => all + r[field], 0);
  const table = new Table({
    label: "Live processes",
    columns: columns(rows, state),
    count: rows.length,
    state,
    sort: "persecond",
    tall: true,
    open: (i) => rows[i].build_id && go({ ...another("report"), build: rows[i].build_id, match: [] }),
  });
  const apply = (text) => {
    const wanted = matcher(text);
    table.filter(
      wanted ? (i) => wanted(`${rows[i].name} ${rows[i].pid} ${rows[i].state} ${tags(rows[i])}`) : undefined,
    );
    return `${format.count(table.rows.length)} of ${format.count(rows.length)}${more ? " and more" : ""} processes`;
  };
  box.apply = (text) => say(apply(text));
  const focused =
    box.querySelector(".scroll")?.contains(document.activeElement) &&
    document.activeElement.getAttribute("role") === "grid";
  const aside = box.querySelector(".scroll")?.scrollLeft ?? 0;
  replace(
    box,
    el(
      "p",
      { id: "live-sum", class: "headline" },
      `${format.several(rows.length, "process", "processes")}, ${format.rate(sum("calls_per_second"))} calls/s, `,
      `${format.count(rows.filter((r) => r.state === "counting").length)} counting.`,
    ),
    table.node,
  );
  if (innerWidth < NARROW) table.show(FEW, true);
  apply(state.q);
  table.restore();
  table.node.scrollLeft = aside;
  if (focused) table.table.focus({ preventScroll: true });
}

export async function draw(main, state, signal) {
  const answer = await ask(state, signal);
  const box = el("div");
  const stop = el("button", { id: "still", type: "button", onclick: () => hold(!still) });
  const since = el("span", { class: "hint", role: "note" });
  const hold = (wanted) => {
    const resumed = still && !wanted;
    still = wanted;
    replace(stop, still ? "Resume" : "Pause");
    stop.setAttribute("aria-label", still ? "Resume updates" : "Pause updates");
    replace(since, still ? `Paused at ${format.clock(new Date().toISOString())}` : "");
    if (resumed) refresh();
  };
  const filter = filterField(
    () => state,
    "Filter processes: program, process, state or label",
    "Filter",
    (text) => box.apply?.(text),
  );
  const none = () => [
    el(
      "p",
      { class: "empty" },
      state.match.length ? "No live process has these labels." : "No live processes. Start one with:",
    ),
    state.match.length ? null : el("pre", {}, el("code", {}, "profctl run ./program")),
  ];
  const refresh = async () => {
    try {
      put(await ask(state, signal));
    } catch (error) {
      if (error.name !== "AbortError") say(`Not up to date: ${error.message}`);
    }
  };
  const put = (next) => (next.rows.length ? show(state, next, box) : replace(box, none()));
  const pause = el("span", { class: "bar" }, stop, since);
  replace(
    main,
    el(
      "div",
      { class: "toolbar" },
      el("h1", {}, "Live processes"),
      filter,
      pause,
      labelsMenu(state),
      labelChips(state),
    ),
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
