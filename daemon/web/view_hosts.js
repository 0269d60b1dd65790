// The hosts of a fleet: which are late or silent. The longest silent one stands first.
import * as api from "./api.js";
import { el, later, replace, svg } from "./dom.js";
import * as format from "./format.js";
import { spark } from "./overview_day.js";
import { fleet, go, to } from "./state.js";
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

const DAY = 86400e3;
const PAUSE = 200; // ms that a row is in sight before its day is asked for
const [HIGH, LABEL] = [40, 16]; // pixels of the picture, and of the numbers in it
const FEWEST = 2; // hosts that need no picture
const BINS = 40; // of the picture
// The axis of the picture, in seconds; equal factors are equally long.
const TICKS = [
  [10, "10 s"],
  [120, "2 min"],
  [3600, "1 h"],
  [86400, "1 d"],
  [7 * 86400, "7 d"],
];
const ENDS = [5, 30 * 86400];

const remarks = (host) =>
  [
    host.two_machines_seen ? `two machines with one identity, seen ${format.ago(host.two_machines_seen)}` : "",
    host.restored ? `restored ${format.ago(host.restored)}` : "",
    host.lag_seconds < 120 && !(Date.now() - Date.parse(host.last_upload) < DAY) ? "no new counts for a day" : "",
  ]
    .filter(Boolean)
    .join("; ");

const there = (host) => ({ ...fleet("functions"), match: [equals("host", host.name)] });

/** The CPU time of a host in the last day, when its row stays in sight. known: promises by host. programs(): a promise
 *  of the build-ids of programs, whose time has that of their libraries in it. */
function dayCell(host, known, programs, signal) {
  const place = el("span.trend");
  const url = `api/v1/load?${api.query({ step: "1h", match: [equals("host", host.name)], limit: "1000" })}`;
  const load = () => Promise.all([api.rows(url, 20000, signal), programs()]);
  const ask = () => known.get(host) ?? known.set(host, load()).get(host);
  const shown = ([{ rows }, ids]) => {
    const own = rows.filter((row) => ids.has(row.build_id));
    const hours = Array.from({ length: 24 }, (_, i) => own.reduce((sum, row) => sum + (row.seconds[i] ?? 0), 0));
    const all = hours.reduce((sum, n) => sum + n, 0);
    replace(place, all > 0 ? [format.seconds(all), spark(hours)] : "–");
  };
  const fill = () => later(ask(), shown);
  if (known.has(host)) fill();
  else setTimeout(() => place.isConnected && fill(), PAUSE);
  return place;
}

function columns(rows, state, signal) {
  const slim = innerWidth < NARROW;
  const known = new Map();
  const ids = ({ rows: builds }) => new Set(builds.filter((b) => b.is_program).map((b) => b.build_id));
  let asked = null; // by the first row whose day is shown
  const programs = () => (asked ??= api.rows("api/v1/builds?limit=1000", 20000, signal).then(ids));
  const contact = (host) => new Date(Date.now() - 1000 * host.lag_seconds).toISOString();
  const name = (host, space) =>
    el("a", { ...to(state, there(host)), tabIndex: -1, title: `Functions on ${host.name}` }, fitted(host.name, space));
  const stateCell = (host) => {
    const { kind, sign, text: word, about } = stateOf(host);
    const mark = el("span", { "aria-hidden": "true" }, `${sign} `);
    const said = slim && about ? ago(contact(host)) : word;
    return el("span", { class: `delta ${kind}`, title: `${word} ${about}` }, mark, said);
  };
  const text = (key, title, width, rare, value) =>
    column(key, title, { value, cell: (host) => el("span", { title: value(host) }, value(host)), width, rare });
  const when = (key, title, time, hint) => {
    const value = (host) => Date.parse(time(host)) || 0;
    return numbers(key, title, { value, cell: (host) => ago(time(host), "never"), width: 9, hint });
  };
  const silence = (host) => String(1e9 - host.lag_seconds).padStart(10, "0");
  const day = { still: true, cell: (host) => dayCell(host, known, programs, signal), width: 12, rare: 4 };
  const versions = Map.groupBy(rows, (host) => host.version);
  const usual = [...versions].reduce((a, b) => (b[1].length > a[1].length ? b : a))[0];
  const version = ({ version: own }) =>
    el("span", { class: own === usual ? "" : "differs", title: `most hosts have ${usual || "–"}` }, own || "–");
  const tenant = text("tenant", "Tenant", 7, 3, (host) => host.tenant);
  return [
    column("name", "Host", { cell: name }),
    column("state", "State", { value: silence, cell: stateCell, width: slim ? 11 : 8 }),
    when("contact", "Last contact", contact, "when the host last reached this daemon, with or without new counts"),
    when("upload", "New counts", (host) => host.last_upload, "when counts of the host last came"),
    numbers("day", "CPU, last day", { ...day, hint: "CPU time of what was counted there, by hour" }),
    column("version", "profd", { cell: version, width: 5, rare: 2 }),
    ...(rows.some((host) => host.tenant !== rows[0].tenant) ? [tenant] : []),
    ...(rows.some(remarks) ? [text("remarks", "Remarks", 13, 1, remarks)] : []),
  ];
}

/** How long ago hosts had contact, as a picture: how many in each part of the axis. */
function contacts(rows) {
  const [least, most] = ENDS.map(Math.log);
  const placeOf = (seconds) => Math.min(1, Math.max(0, (Math.log(Math.max(1, seconds)) - least) / (most - least)));
  const bins = Map.groupBy(rows, (host) => Math.min(BINS - 1, Math.floor(BINS * placeOf(host.lag_seconds))));
  const largest = format.largest([...bins.values()].map((list) => list.length));
  const column = ([bin, list]) => {
    const high = Math.max(3, (HIGH - LABEL) * (list.length / largest));
    const at = { x: `${(100 * bin) / BINS}%`, y: HIGH - high, width: `${95 / BINS}%`, height: high };
    const [first] = list;
    const title = `${first.name}${list.length > 1 ? ` and ${format.several(list.length - 1, "other", "others")}` : ""}`;
    const number = { x: at.x, y: HIGH - high - 4 };
    const parts = [svg("title", title), svg("rect", at), svg("text", number, String(list.length))];
    return svg("g", { class: stateOf(first).kind }, parts);
  };
  const tick = ([seconds, text]) => el("span", { style: { left: `${100 * placeOf(seconds)}%` } }, text);
  const about = "Hosts by the time since their last contact. The table has the same times.";
  return el(
    "div.contacts",
    innerWidth < NARROW ? null : el("p.hint", "Hosts by the time since their last contact:"),
    svg("svg", { role: "img", "aria-label": about, height: HIGH }, [...bins].map(column)),
    el("div.ticks", { "aria-hidden": "true" }, TICKS.map(tick)),
  );
}

/** How many are in which state, the worst first. */
function headline(rows) {
  const part = (state) => {
    const n = rows.filter((host) => stateOf(host) === state).length;
    return n ? `${format.count(n)} ${state.text} ${state.about}`.trim() : "";
  };
  const parts = STATES.map(part).filter(Boolean).join(", ");
  const order = rows.length > 1 && innerWidth >= NARROW ? " The host that has been silent longest stands first." : "";
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
    columns: columns(rows, state, signal),
    rows,
    state,
    sort: "state",
    open: (host) => go(there(host)),
  });
  const picture = rows.length > FEWEST ? contacts(rows) : null;
  replace(main, el("div.toolbar", title, filter), headline(rows), picture, table.node);
  show();
}
