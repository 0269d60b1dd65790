// The hosts of a fleet: lag and silence.
import * as api from "./api.js";
import { el, replace, say } from "./dom.js";
import * as format from "./format.js";
import { fleet, to } from "./state.js";
import { filterField, Table } from "./table.js";
import { equals } from "./toolbar.js";
import { matcher, NARROW } from "./view_report.js";

const LATE = 120; // seconds of lag from which a host lags
const LOST = 86400; // from which it is not heard of
const FEW = ["state", "lag"]; // columns where there is little space

/** What is wrong with a host: a sign, a word and what it means. The worst comes first. */
function stateOf(host) {
  if (host.lag_seconds >= LOST)
    return { rank: 0, kind: "more", sign: "▲", text: "not heard of", about: "It has not arrived for a day or longer." };
  if (host.lag_seconds >= LATE)
    return { rank: 1, kind: "more", sign: "▲", text: "lags", about: "It is late by more than two minutes." };
  return { rank: 2, kind: "same", sign: "✓", text: "up to date", about: "It arrived within the last two minutes." };
}

const remarks = (host) =>
  [
    host.two_machines_seen ? `two machines with one identity, seen ${format.ago(host.two_machines_seen)}` : "",
    host.restored ? `restored ${format.ago(host.restored)}` : "",
  ]
    .filter(Boolean)
    .join("; ");

/** "12 s", "5 min", "3 h", "4 d". */
const lag = (s) =>
  s < 120
    ? `${s} s`
    : s < 7200
      ? `${Math.round(s / 60)} min`
      : s < 172800
        ? `${Math.round(s / 3600)} h`
        : `${Math.round(s / 86400)} d`;

const time = (at) => (at ? el("time", { dateTime: at, title: format.both(at) }, format.ago(at)) : "never");

function columns(rows, state) {
  const functions = (host) => ({ ...fleet("functions"), match: [equals("host", host.name)] });
  const text = (key, title, width, value) => ({
    key,
    title,
    width,
    value,
    cell: (i) => el("span", { title: value(i) }, value(i)),
  });
  return [
    {
      key: "name",
      title: "Host",
      value: (i) => rows[i].name,
      cell: (i) =>
        el(
          "a",
          { ...to(state, functions(rows[i])), tabIndex: -1, title: `Functions on ${rows[i].name}` },
          rows[i].name,
        ),
    },
    {
      key: "state",
      title: "State",
      width: 9.2,
      value: (i) => `${stateOf(rows[i]).rank}${String(1e9 - rows[i].lag_seconds).padStart(10, "0")}`,
      cell: (i) => {
        const { kind, sign, text: word, about } = stateOf(rows[i]);
        return el(
          "span",
          { class: `delta ${kind}`, title: about },
          el("span", { "aria-hidden": "true" }, `${sign} `),
          word,
        );
      },
    },
    {
      key: "lag",
      title: "Lag",
      hint: "time since the host arrived last",
      width: 4.2,
      numeric: true,
      value: (i) => rows[i].lag_seconds,
      cell: (i) => lag(rows[i].lag_seconds),
    },
    {
      key: "upload",
      title: "Last upload",
      hint: "when counts of the host came last",
      width: 9.5,
      numeric: true,
      value: (i) => Date.parse(rows[i].last_upload) || 0,
      cell: (i) => time(rows[i].last_upload),
    },
    text("version", "profd", 6, (i) => rows[i].version || "–"),
    text("tenant", "Tenant", 7, (i) => rows[i].tenant),
    text("remarks", "Remarks", 16, (i) => remarks(rows[i])),
  ];
}

/** How many are in which state, the worst first. */
function headline(rows) {
  const counts = new Map();
  for (const { rank, text } of rows.map(stateOf)) counts.set(text, { rank, n: (counts.get(text)?.n ?? 0) + 1 });
  const parts = [...counts]
    .sort(([, a], [, b]) => a.rank - b.rank)
    .map(([text, { n }]) => `${format.count(n)} ${text}`);
  return el(
    "p",
    { class: "answer" },
    el("strong", {}, `${format.several(rows.length, "host", "hosts")}: ${parts.join(", ")}.`),
  );
}

export async function draw(main, state, signal) {
  const { rows, more } = await api.rows("api/v1/hosts?limit=1000", 20000, signal);
  const title = el("h1", {}, "Hosts");
  if (rows.length === 0) {
    const none =
      "No other host sends profiles to this daemon. A centre receives them; profd-fleet(7) says how hosts send them.";
    replace(main, el("div", { class: "toolbar" }, title), el("p", { class: "empty" }, none));
    return;
  }
  const table = new Table({
    label: "Hosts",
    columns: columns(rows, state),
    count: rows.length,
    state,
    sort: "state",
    tall: true,
  });
  const apply = (text) => {
    const wanted = matcher(text);
    table.filter(
      wanted
        ? (i) => wanted(`${rows[i].name} ${rows[i].tenant} ${stateOf(rows[i]).text} ${remarks(rows[i])}`)
        : undefined,
    );
    say(
      `${format.count(table.rows.length)} of ${format.several(rows.length, "host", "hosts")}${more ? " and more" : ""}`,
    );
  };
  const filter = filterField(
    () => state,
    "Filter hosts by name, tenant or state",
    "Filter",
    apply,
    () => table,
  );
  replace(main, el("div", { class: "toolbar" }, title, filter), headline(rows), table.node);
  if (innerWidth < NARROW) table.show(FEW, true);
  apply(state.q);
  table.restore();
}
