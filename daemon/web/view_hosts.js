// The hosts of a fleet: which are late or silent. The longest silent one stands first.
import * as api from "./api.js";
import { el, replace } from "./dom.js";
import * as format from "./format.js";
import { fleet, to } from "./state.js";
import { ago, column, fitted, listing, NARROW, numbers } from "./table.js";
import { equals } from "./toolbar.js";

const FEW = ["state"]; // columns where there is little space
/** What a host without contact for that many seconds is called. The worst comes first. */
const STATES = [
  { least: 86400, kind: "more", sign: "▲", text: "silent", about: "for a day or longer" },
  { least: 120, kind: "more", sign: "▲", text: "late", about: "by more than two minutes" },
  { least: 0, kind: "same", sign: "✓", text: "up to date", about: "" },
];
const stateOf = (host) => STATES.find(({ least }) => host.lag_seconds >= least) ?? STATES.at(-1);

const remarks = (host) =>
  [
    host.two_machines_seen ? `two machines with one identity, seen ${format.ago(host.two_machines_seen)}` : "",
    host.restored ? `restored ${format.ago(host.restored)}` : "",
  ]
    .filter(Boolean)
    .join("; ");

function columns(state) {
  const slim = innerWidth < NARROW;
  const contact = (host) => new Date(Date.now() - 1000 * host.lag_seconds).toISOString();
  const name = (host, space) => {
    const there = { ...fleet("functions"), match: [equals("host", host.name)] };
    const about = { tabIndex: -1, title: `Functions on ${host.name}` };
    return el("a", { ...to(state, there), ...about }, fitted(host.name, space));
  };
  const stateCell = (host) => {
    const { kind, sign, text: word, about } = stateOf(host);
    const mark = el("span", { "aria-hidden": "true" }, `${sign} `);
    const since = slim && about ? [", ", ago(contact(host))] : null;
    return el("span", { class: `delta ${kind}`, title: `${word} ${about}` }, mark, word, since);
  };
  const text = (key, title, width, rare, value) =>
    column(key, title, { value, cell: (host) => el("span", { title: value(host) }, value(host)), width, rare });
  const when = (key, title, time, hint) => {
    const value = (host) => Date.parse(time(host)) || 0;
    return numbers(key, title, { value, cell: (host) => ago(time(host), "never"), width: 9.5, hint });
  };
  const silence = (host) => String(1e9 - host.lag_seconds).padStart(10, "0");
  return [
    column("name", "Host", { cell: name }),
    column("state", "State", { value: silence, cell: stateCell, width: slim ? 12 : 8 }),
    when("contact", "Last contact", contact, "when the host last reached this daemon, with or without new counts"),
    when("upload", "New counts", (host) => host.last_upload, "when counts of the host last came"),
    text("version", "profd", 6, 2, (host) => host.version || "–"),
    text("tenant", "Tenant", 7, 3, (host) => host.tenant),
    text("remarks", "Remarks", 16, 1, remarks),
  ];
}

/** How many are in which state, the worst first. */
function headline(rows) {
  const part = (state) => {
    const n = rows.filter((host) => stateOf(host) === state).length;
    return n ? `${format.count(n)} ${state.text} ${state.about}`.trim() : "";
  };
  const parts = STATES.map(part).filter(Boolean).join(", ");
  const order = rows.length > 1 ? " The host that has been silent longest stands first." : "";
  return el("p.answer", el("strong", `${format.several(rows.length, "host", "hosts")}: ${parts}.`), order);
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
  const { table, filter, show } = listing({
    about: "Filter hosts by name, tenant or state",
    hint: "Filter",
    text: (host) => `${host.name} ${host.tenant} ${stateOf(host).text} ${remarks(host)}`,
    nouns: ["host", "hosts"],
    more,
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
