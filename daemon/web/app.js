// The dashboard: the address bar says what is shown, a view draws it.
import * as api from "./api.js";
import { el, replace, say } from "./dom.js";
import * as question from "./question.js";
import { another, follow, go, listen, question as asked, read, VIEWS } from "./state.js";
import * as builds from "./view_builds.js";
import * as compare from "./view_compare.js";
import * as flame from "./view_flame.js";
import * as graph from "./view_graph.js";
import * as report from "./view_report.js";

const views = { builds, report, graph, flame, compare };
const main = document.getElementById("main");
const section = document.getElementById("question");
const help = document.getElementById("help");
let running = null;
let shown = "";

function problem(error) {
  const away = error.status === undefined;
  replace(
    main,
    el("h2", {}, away ? "The daemon does not answer" : error.title || "Refused"),
    el("p", { class: "warning" }, error.message),
    error.status === 401 ? el("p", {}, "This daemon wants a token: open the address that ends with ", el("code", {}, "#t=TOKEN"), ".") : null,
    el("p", {}, el("button", { type: "button", onclick: draw }, "Try again"), " ", el("a", { href: "./" }, "All builds")),
  );
}

/** Slow answers say so, and can be given up. */
function waiting(signal) {
  const began = performance.now();
  const timer = setInterval(() => {
    if (!signal.aborted) say(`Working for ${Math.round((performance.now() - began) / 1000)} s…`);
  }, 1000);
  return () => {
    clearInterval(timer);
    if (document.getElementById("status").textContent.startsWith("Working")) say("");
  };
}

async function frame(state, signal) {
  question.tabs(document.getElementById("views"), state);
  if (!state.build) {
    section.hidden = true;
    document.title = "profd";
    return null;
  }
  const row = await api.json(api.path(state.build, ""), signal);
  document.title = `${row.name?.replace(/^.*\//, "") ?? state.build} · ${VIEWS.find(([view]) => view === state.view)[1]} · profd`;
  await question.draw(section, state, row, signal);
  return row;
}

async function draw() {
  const state = read();
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  const done = waiting(signal);
  const key = `${state.build} ${state.view}`;
  if (key !== shown) replace(main, el("p", { role: "status" }, "Loading…"));
  try {
    await frame(state, signal);
    if (signal.aborted) return;
    const answer = await views[state.view].draw(main, state, signal);
    if (!signal.aborted && state.build) {
      const about = answer ?? (await api.json(api.path(state.build, "/report", { ...asked(state), view: "flat", limit: 1 }), signal));
      replace(document.getElementById("origin"), question.origin(about));
    }
    if (key !== shown) main.focus({ preventScroll: true });
    shown = key;
  } catch (error) {
    if (error.name !== "AbortError") problem(error);
  } finally {
    done();
  }
}

function keys(event) {
  const typing = event.target.closest("input, textarea, select");
  if (event.key === "Escape" && typing) return typing.blur();
  if (typing || help.open || event.ctrlKey || event.metaKey || event.altKey) return undefined;
  const state = read();
  if (event.key === "/") {
    event.preventDefault();
    document.getElementById("filter")?.focus();
  } else if (event.key === "?") help.showModal();
  else if (event.key === "b") go(state, { build: "", q: "", match: [] });
  else if (event.key === "Escape" && state.fn) go(state, { fn: "", of: "" });
  else if (state.build && VIEWS[Number(event.key) - 1]) go(state, another(VIEWS[Number(event.key) - 1][0]));
  return undefined;
}

replace(document.getElementById("footer"), el("a", { href: "openapi.json" }, "interface"), " · ", el("a", { href: "api/v1/builds" }, "builds as JSON"), " · ", el("a", { href: "metrics" }, "metrics"), " · ", el("a", { href: "healthz" }, "health"));
document.getElementById("help-open").addEventListener("click", () => help.showModal());
document.addEventListener("click", follow);
document.addEventListener("keydown", keys);
listen(draw);
draw();
