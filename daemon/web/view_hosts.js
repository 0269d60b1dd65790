// The hosts of a fleet: lag and silence.
import * as api from "./api.js";
import { el, replace, say } from "./dom.js";
import * as format from "./format.js";
import { fleet, to } from "./state.js";
import { ago, column, listing, numbers } from "./table.js";
import { equals } from "./toolbar.js";

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

function columns(state) {
  const name = (host) => {
    const there = { ...fleet("functions"), match: [equals("host", host.name)] };
    return el("a", { ...to(state, there), tabIndex: -1, title: `Functions on ${host.name}` }, host.name);
  };
  const order = (host) => `${stateOf(host).rank}${String(1e9 - host.lag_seconds).padStart(10, "0")}`;
  const stateCell = (host) => {
    const { kind, sign, text: word, about } = stateOf(host);
    const mark = el("span", { "aria-hidden": "true" }, `${sign} `);
    return el("span", { class: `delta ${kind}`, title: about }, mark, word);
  };
  const text = (key, title, width, value) =>
    column(key, title, { value, cell: (host) => el("span", { title: value(host) }, value(host)), width });
  const upload = {
    value: (host) => Date.parse(host.last_upload) || 0,
    cell: (host) => ago(host.last_upload, "never"),
    hint: "when counts of the host came last",
  };
  return [
    column("name", "Host", { cell: name, width: 8 }),
    column("state", "State", { value: order, cell: stateCell, width: 9.6 }),
    numbers("lag", "Lag", {
      value: (host) => host.lag_seconds,
      cell: (host) => lag(host.lag_seconds),
      ...{ width: 4.8, hint: "time since the host arrived last" },
    }),
    numbers("upload", "Last upload", { ...upload, width: 9.5 }),
    text("version", "profd", 6, (host) => host.version || "–"),
    text("tenant", "Tenant", 7, (host) => host.tenant),
    text("remarks", "Remarks", 16, remarks),
  ];
}

/** How many are in which state, the worst first. */
function headline(rows) {
  const counts = new Map();
  for (const { rank, text } of rows.map(stateOf)) counts.set(text, { rank, n: (counts.get(text)?.n ?? 0) + 1 });
  const parts = [...counts]
    .sort(([, a], [, b]) => a.rank - b.rank)
    .map(([text, { n }]) => `${format.count(n)} ${text}`);
  return el("p.answer", el("strong", `${format.several(rows.length, "host", "hosts")}: ${parts.join(", ")}.`));
}

export async function draw(main, state, signal) {
  const { rows, more } = await api.rows("api/v1/hosts?limit=1000", 20000, signal);
  const title = el("h1", "Hosts");
  if (rows.length === 0) {
    const none =
      "No other host sends profiles to this daemon. A centre receives them; profd-fleet(7) says how hosts send them.";
    replace(main, el("div.toolbar", title), el("p.empty", none));
    return;
  }
  const told = (_, shown) =>
    say(`${format.count(shown.length)} of ${format.several(rows.length, "host", "hosts")}${more ? " and more" : ""}`);
  const { table, filter, show } = listing({
    about: "Filter hosts by name, tenant or state",
    hint: "Filter",
    text: (host) => `${host.name} ${host.tenant} ${stateOf(host).text} ${remarks(host)}`,
    told,
    few: FEW,
    label: "Hosts",
    columns: columns(state),
    rows,
    state,
    sort: "state",
  });
  replace(main, el("div.toolbar", title, filter), headline(rows), table.node);
  show();
}
