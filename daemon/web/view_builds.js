// All builds, with a line of their load over the last day.
import * as api from "./api.js";
import { el, replace, say, svg } from "./dom.js";
import * as format from "./format.js";
import { another, go, to } from "./state.js";
import { filterField, Table } from "./table.js";

const HOURS = 24;

/** The load of the last hours as a little line; empty until it is known, and where the daemon has no series. */
function spark(row) {
  const line = svg("svg", {
    class: "spark",
    viewBox: `0 0 ${HOURS} 10`,
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": "load of the last 24 hours",
  });
  const url = api.path(row.build_id, "/groups", { step: "1h", since: `now-${HOURS}h`, limit: "1000" });
  api.json(url).then(
    (page) => {
      const sums = new Array(HOURS).fill(0);
      for (const group of page.rows) {
        const hour = HOURS - 1 - Math.floor((Date.now() - new Date(group.time).getTime()) / 3600e3);
        if (hour >= 0 && hour < HOURS) sums[hour] += group.seconds;
      }
      const most = Math.max(...sums);
      row.load = sums.reduce((a, b) => a + b, 0);
      if (most <= 0) return;
      line.append(svg("path", { d: `M${sums.map((s, i) => `${i + 0.5},${9.5 - (9 * s) / most}`).join("L")}` }));
      line.setAttribute(
        "aria-label",
        `load of the last 24 hours: ${format.seconds(row.load)}, at most ${format.seconds(most)} an hour`,
      );
      line.append(svg("title", {}, line.getAttribute("aria-label")));
    },
    () => {},
  );
  return line;
}

const columns = (rows, state) => [
  {
    key: "name",
    title: "Build",
    value: (i) => format.base(rows[i].name),
    cell: (i) => [
      el(
        "a",
        { ...to(state, { ...another("report"), build: rows[i].build_id }), tabIndex: -1, title: rows[i].name },
        format.base(rows[i].name) || "?",
      ),
      rows[i].exact
        ? null
        : el("abbr", { class: "inexact", title: `not exact: ${(rows[i].inexact_reasons || []).join(", ")}` }, " ≈"),
    ],
  },
  {
    key: "id",
    width: 9.5,
    title: "Build-id",
    value: (i) => rows[i].build_id,
    cell: (i) => el("code", { title: rows[i].build_id }, format.brief(rows[i].build_id)),
  },
  {
    key: "load",
    width: 8.5,
    title: "Last day",
    numeric: true,
    value: (i) => rows[i].load ?? Number.NaN,
    cell: (i) => (rows[i].line ??= spark(rows[i])),
  },
  {
    key: "seconds",
    title: "CPU time",
    numeric: true,
    value: (i) => rows[i].seconds,
    cell: (i) => format.seconds(rows[i].seconds),
  },
  {
    key: "calls",
    title: "Calls",
    numeric: true,
    value: (i) => rows[i].calls,
    cell: (i) => el("span", { title: format.exact(rows[i], "calls") }, format.short(rows[i].calls)),
  },
  {
    key: "processes",
    title: "Processes",
    numeric: true,
    value: (i) => rows[i].processes_started,
    cell: (i) => format.exact(rows[i], "processes_started"),
  },
  {
    key: "uploads",
    title: "Uploads",
    numeric: true,
    value: (i) => rows[i].uploads,
    cell: (i) => format.exact(rows[i], "uploads"),
  },
  {
    key: "last",
    width: 9,
    title: "Last seen",
    numeric: true,
    value: (i) => Date.parse(rows[i].last_seen) || 0,
    cell: (i) =>
      el(
        "time",
        { dateTime: rows[i].last_seen || "", title: format.moment(rows[i].last_seen) },
        format.ago(rows[i].last_seen),
      ),
  },
];

export async function draw(main, state, signal) {
  const { rows, more } = await api.rows("api/v1/builds?limit=1000", 20000, signal);
  if (rows.length === 0) {
    replace(
      main,
      el("h1", {}, "Builds"),
      el(
        "p",
        {},
        "No profiles stored yet. Compile a program with ",
        el("code", {}, "-pg"),
        ", run it, and send its gmon.out:",
      ),
      el("pre", {}, el("code", {}, "profctl upload -e ./program gmon.out")),
    );
    return;
  }
  const table = new Table({
    label: "Builds",
    columns: columns(rows, state),
    count: rows.length,
    state,
    sort: "last",
    tall: true,
    open: (i) => go({ ...another("report"), build: rows[i].build_id }),
  });
  const apply = (text) => {
    const wanted = text.toLowerCase();
    table.filter(wanted ? (i) => `${rows[i].name} ${rows[i].build_id}`.toLowerCase().includes(wanted) : undefined);
    say(`${table.rows.length} of ${rows.length}${more ? " and more" : ""} builds`);
  };
  replace(
    main,
    el(
      "div",
      { class: "bar" },
      el("h1", {}, "Builds"),
      filterField(
        () => state,
        "Filter builds",
        "name or build-id",
        apply,
        () => table,
      ),
    ),
    table.node,
  );
  apply(state.q);
  table.restore();
}
