// The address bar is the whole state: every view is a function of it.

export const VIEWS = [
  ["report", "Table"],
  ["graph", "Call graph"],
  ["flame", "Flame"],
  ["compare", "Compare"],
];
const NAMES = ["build", "view", "fn", "of", "sort", "dir", "q", "since", "until", "scope", "static", "against", "bsince", "buntil", "nodes", "zoom"];

export function read() {
  const query = new URLSearchParams(location.search);
  const state = { match: query.getAll("match") };
  for (const name of NAMES) state[name] = query.get(name) ?? "";
  if (!state.build) state.view = "builds";
  else if (!VIEWS.some(([view]) => view === state.view)) state.view = "report";
  return state;
}

export function href(state, changes = {}) {
  const next = { ...state, ...changes };
  const query = new URLSearchParams();
  if (next.build) {
    for (const name of NAMES) if (next[name]) query.set(name, next[name]);
    for (const match of next.match || []) query.append("match", match);
  } else if (next.q) query.set("q", next.q);
  const text = query.toString();
  return text ? `?${text}` : "./";
}

let listener = () => {};
export const listen = (f) => {
  listener = f;
  addEventListener("popstate", () => f());
};

/** Goes there without a reload. */
export function go(state, changes = {}, how = "pushState") {
  history[how](null, "", href(state, changes));
  listener();
}
/** Remembers without drawing anew. */
export const note = (state, changes) => history.replaceState(null, "", href(state, changes));

/** Another view of the same build: what belongs to the present view stays behind. */
export const another = (view) => ({ view, q: "", sort: "", dir: "", zoom: "", nodes: "" });

/** What a report is asked for. */
export const question = (state) => ({ since: state.since, until: state.until, match: state.match, scope: state.scope, static: state.static });

/** Links inside the page become steps of it. */
export function follow(event) {
  const link = event.target.closest?.("a");
  if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const url = new URL(link.href);
  const here = new URL(document.baseURI);
  if (url.origin !== location.origin || url.pathname !== here.pathname || link.target || link.hash) return;
  event.preventDefault();
  history.pushState(null, "", url.search || here.pathname);
  listener();
}
