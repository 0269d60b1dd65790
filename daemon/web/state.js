// The address bar is the whole state: every view is a function of it.
import { add, el } from "./dom.js";

/** Views of one build, and views of all. */
export const VIEWS = [
  ["report", "Table"],
  ["graph", "Call graph"],
  ["flame", "Flame"],
  ["tree", "Call tree"],
  ["compare", "Compare"],
  ["never", "Never called"],
  ["cycles", "Cycles"],
  ["code", "Code"],
];
export const FLEET = [
  ["builds", "Overview"],
  ["functions", "Functions"],
  ["processes", "Live"],
  ["hosts", "Hosts"],
];
/** Not in the navigation: the page of the interface. */
export const API = ["api", "API"];
const NAMES = (
  "build view fn of sort dir q row top since until scope static dimension against bsince buntil metric form nodes " +
  "cols focus depth zoom at open step mode split time layout only ignore hide"
).split(" ");
const LISTS = ["match", "bmatch"]; // bmatch: labels of B in a comparison
const RANGE = ["since", "until", "dimension"];

function parse() {
  const query = new URLSearchParams(location.search);
  const state = { match: query.getAll("match"), bmatch: query.getAll("bmatch") };
  for (const name of NAMES) state[name] = query.get(name) ?? "";
  const views = state.build ? VIEWS : [...FLEET, API];
  if (!views.some(([view]) => view === state.view)) state.view = views[0][0];
  return state;
}

export function href(state, changes = {}) {
  const next = { ...state, ...changes };
  if (!next.build && next.view === FLEET[0][0]) next.view = "";
  const query = new URLSearchParams();
  for (const name of NAMES) if (next[name]) query.set(name, next[name]);
  for (const list of LISTS) for (const value of next[list] || []) query.append(list, value);
  const text = query.toString();
  return text ? `?${text}` : "./";
}

// What a view remembers (a filter, a place) is written when it has come to rest: browsers refuse hundreds of changes a
// minute.
const REST = 150;
let pending = {};
let timer = 0;

function settle() {
  clearTimeout(timer);
  const changes = pending;
  pending = {};
  if (Object.keys(changes).length) history.replaceState(null, "", href(parse(), changes));
}
/** Remembers without drawing anew; what is local is not in the address. */
export function note(state, changes) {
  Object.assign(state, changes);
  if (state.local) return;
  Object.assign(pending, changes);
  clearTimeout(timer);
  timer = setTimeout(settle, REST);
}

/** Remembers as a step of the history, to which Back returns. */
export function step(state, changes) {
  settle();
  Object.assign(state, changes);
  history.pushState(null, "", href(parse(), changes));
}

export function read() {
  settle();
  return parse();
}

let listener = () => {};
export const listen = (f) => {
  listener = f;
  addEventListener("popstate", () => {
    pending = {}; // of the page that was left
    f();
  });
  addEventListener("beforeunload", settle);
};

/** Goes there without a reload, from wherever the address is now. */
export function go(changes = {}, how = "pushState") {
  history[how](null, "", href(read(), changes));
  listener();
}

const aside = (event) => event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey;

/** Properties of a link that changes a part of the state and leaves the rest as it is when it is followed. */
export const to = (state, changes) => ({
  href: href(state, changes),
  onclick: (event) => {
    if (aside(event)) return;
    event.preventDefault();
    go(changes);
  },
});

/** Links of which one is chosen. all: [value, title]; changes(value) of the state. */
export function links(label, all, now, state, changes) {
  const link = ([value, title]) =>
    el("a", { ...to(state, changes(value)), "aria-current": now === value ? "true" : null }, title);
  return el("span.presets", { role: "group", "aria-label": label }, all.map(link));
}

const OWN = "q sort dir row top zoom at open nodes cols focus depth mode split layout only ignore hide".split(" ");
/** Another view: what belongs to the present one stays behind. */
export const another = (view) => ({ ...Object.fromEntries(OWN.map((name) => [name, ""])), view });
/** All builds, functions or processes: nothing of a build comes along. */
export const fleet = (view) =>
  Object.fromEntries([...NAMES.map((name) => [name, ""]), ["view", view], ...LISTS.map((name) => [name, []])]);

/** How the address names a function. of: its build, if that is not the one that is shown; its id there may be short. */
export const functionAt = (state, address, id = "") => ({ fn: address, of: id.startsWith(state.build) ? "" : id });
/** The same in one word. */
export function focusOf(state, address, id) {
  const { of } = functionAt(state, address, id);
  return of ? `${address}@${of}` : address;
}

/** What a report is asked for. */
export const question = (state) => ({
  since: state.since,
  until: state.until,
  match: state.match,
  scope: state.scope,
  static: state.static,
  dimension: state.dimension,
  time: state.time,
});
/** The part of it that does not need a build. */
export const fleetQuestion = (state) => ({
  ...Object.fromEntries(RANGE.map((name) => [name, state[name]])),
  match: state.match,
  static: state.static,
});

/** Links inside the page become steps of it. */
export function follow(event) {
  const link = event.target.closest?.("a");
  if (!link || event.defaultPrevented || aside(event)) return;
  const url = new URL(link.href);
  const here = new URL(document.baseURI);
  if (url.origin !== location.origin || url.pathname !== here.pathname || link.target || link.hash) return;
  event.preventDefault();
  settle();
  history.pushState(null, "", url.search || here.pathname);
  listener();
}

/** A <details> that keeps in the state whether it is open. make() makes its content when it is opened. */
export function remembersOpen(state, key, details, make) {
  const keys = () => state.open.split(",").filter(Boolean);
  let made = false;
  const fill = () => {
    if (details.open && !made && make) add(details, [make()]);
    made ||= details.open;
  };
  details.open = keys().includes(key);
  fill();
  details.addEventListener("toggle", () => {
    fill();
    const others = keys().filter((k) => k !== key);
    const next = (details.open ? [...others, key] : others).join(",");
    if (details.isConnected && next !== state.open) note(state, { open: next });
  });
  return details;
}
