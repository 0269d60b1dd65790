// The dashboard: the address bar says what is shown, a view draws it.
import * as api from "./api.js";
import { ahead } from "./asks.js";
import { button, el, refocus, replace, say, visible } from "./dom.js";
import { originPut } from "./origin.js";
import { another, API, fleet, FLEET, follow, go, listen, question as asked, read, to, VIEWS } from "./state.js";
import * as toolbar from "./toolbar.js";
import * as hosts from "./view_hosts.js";
import * as interfaces from "./view_api.js";
import * as builds from "./view_builds.js";
import * as code from "./view_code.js";
import * as compare from "./view_compare.js";
import * as cycles from "./view_cycles.js";
import * as flame from "./view_flame.js";
import * as functions from "./view_functions.js";
import * as graph from "./view_graph.js";
import * as never from "./view_never.js";
import * as processes from "./view_processes.js";
import * as report from "./view_report.js";
import * as tree from "./view_tree.js";

ahead(); // the first question is on its way while the page is built
const views = {
  api: interfaces,
  builds,
  functions,
  hosts,
  processes,
  report,
  graph,
  flame,
  tree,
  compare,
  never,
  cycles,
  code,
};
const main = document.getElementById("main");
const section = document.getElementById("question");
const help = document.getElementById("help");
let running = null;
let shown = "";
let asking = "";
let first = true;

const TITLES = {
  400: "The query is invalid",
  401: "Please log in",
  403: "Access denied",
  404: "Nothing found",
  409: "More than one answer",
  413: "The result is too large",
  422: "The result is too large",
  REFUSED: "This is no build-id",
  500: "The daemon failed to answer",
  503: "The daemon is busy",
};

/** A message of the daemon as a sentence; what stands between backquotes is a command. */
const sentence = (text) =>
  text
    .replace(/^[a-z](?=[a-z]* )/, (c) => c.toUpperCase())
    .split("`")
    .map((part, i) => (i % 2 ? el("code", part) : part));

/** What can be done about a refusal, besides asking again. */
function advice(error, state) {
  if (!error.away && error.status === undefined)
    return [el("p", "This is a fault of this page, not of the data. Please report it with the address of the page.")];
  if (error.away)
    return [el("p", "Check that profd runs and listens at this address with ", el("code", "profctl status"), ".")];
  if (error.status === 401 || error.status === 403) return [tokenForm(error.status)];
  const whole = () =>
    el("a", to(state, { since: "", until: "", match: [], dimension: "", scope: "", static: "" }), "remove all filters");
  const less = () => [el("p", "Choose a shorter time or fewer labels, or ", whole(), ".")];
  const other = {
    400: [el("p", "A filter in the address cannot be read. You can ", whole(), ".")],
    404: [el("p", "It may have been deleted, or belong to a user whose profiles you may not read.")],
    409: [
      el(
        "p",
        "The build-id prefix must be unique, and samples of different kinds cannot be added up. ",
        "Choose the build from the list, or ",
        whole(),
        ".",
      ),
    ],
    413: less(),
    422: less(),
    REFUSED: [el("p", "Choose the build from the list.")],
    503: [el("p", "Try again in a moment.")],
  };
  return other[error.code] ?? other[error.status] ?? [];
}

/** The token is kept for this tab, and sent with every question. */
function tokenForm(status) {
  const field = el("input", { id: "token", type: "password", size: 40 });
  const apply = (event) => {
    event.preventDefault();
    api.useToken(field.value.trim());
    draw();
  };
  return el(
    "form.bar",
    { onsubmit: apply },
    el(
      "p",
      status === 403 || api.hasToken() ? "The token was not accepted. " : "This daemon requires a token. ",
      "It is printed by ",
      el("code", "profctl token add NAME --read"),
      ". A URL may contain it as ",
      el("code", "#t=TOKEN"),
      ".",
    ),
    el("label", { for: "token" }, "Token"),
    field,
    el("button", "Log in"),
  );
}

function titleOf(error) {
  if (error.away) return "The daemon does not answer";
  return error.status === undefined ? "This page failed" : (TITLES[error.code] ?? TITLES[error.status] ?? error.title);
}

function problem(error, state) {
  shown = "";
  document.title = "profd";
  if (asking === "") section.hidden = true;
  replace(
    main,
    el(section.hidden ? "h1" : "h2", {}, titleOf(error)),
    el("p.warning", { role: "alert" }, sentence(error.message)),
    advice(error, state),
    el("p", button("Try again", draw), " ", el("a", { href: "./" }, "Overview")),
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
  toolbar.tabs(document.getElementById("views"), state);
  if (!state.build) {
    section.hidden = true;
    asking = "";
    return null;
  }
  const key = JSON.stringify([state.build, asked(state)]);
  const same = key === asking;
  if (!same) asking = "";
  const row = await api.json(api.path(state.build, ""), signal);
  if (!same) toolbar.draw(section, state, row, signal);
  asking = key;
  return row;
}

/** What a tab or a bookmark is called: the function, the build, the view. */
function entitle(state, row) {
  const view = [...VIEWS, ...FLEET, API].find(([name]) => name === state.view)[1];
  const named = state.fn ? main.querySelector(".pane h2")?.textContent : "";
  document.title = visible(
    [named, row && (row.name?.replace(/^.*\//, "") || state.build), view, "profd"].filter(Boolean).join(" · "),
  );
}

async function origin(state, answer, signal) {
  if (!answer && document.getElementById("origin").hasChildNodes()) return;
  const url = api.path(state.build, "/report", { ...asked(state), view: "flat", limit: 1 });
  originPut(answer ?? (await api.json(url, signal)));
}

async function draw() {
  const state = read();
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  const done = waiting(signal);
  const key = `${state.build} ${state.view}`;
  const kept = key === shown ? document.activeElement?.id : ""; // what is drawn anew keeps the focus
  if (key !== shown) {
    say(""); // what the view before said
    replace(main, el("p", { role: "status" }, "Loading…"));
  }
  main.setAttribute("aria-busy", "true");
  replace(document.getElementById("cut"));
  const framed = frame(state, signal);
  framed.catch(() => {}); // said where it is waited for
  try {
    // The view's own question is on its way while the build's row is fetched.
    const answer = await views[state.view].draw(main, state, signal);
    done(); // what the view has said stays, however long the rest takes
    const row = await framed;
    if (signal.aborted) return;
    entitle(state, row);
    if (state.build) await origin(state, answer, signal);
    if (kept && document.activeElement === document.body) refocus(kept);
    else if (key !== shown && !first && !document.activeElement?.closest("main, #question"))
      main.focus({ preventScroll: true });
    shown = key;
    first = false;
  } catch (error) {
    await framed.catch(() => {});
    if (error.name === "AbortError" || signal.aborted) return;
    running.abort();
    problem(error, state);
  } finally {
    done();
    if (running.signal === signal) main.removeAttribute("aria-busy");
  }
}

function keys(event) {
  const typing = event.target.closest("input:not([type=checkbox]), textarea, select");
  if (event.defaultPrevented) return undefined;
  if (event.key === "Escape" && typing) return typing.blur();
  if (typing || document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey)
    return undefined;
  const state = read();
  const all = { b: "builds", f: "functions", l: "processes", h: "hosts" }[event.key];
  if (event.key === "/") {
    event.preventDefault();
    document.getElementById("filter")?.select();
  } else if (event.key === "?") help.showModal();
  else if (all) go(fleet(all));
  else if (event.key === "Escape" && state.fn) go({ fn: "", of: "" });
  else if (state.build && VIEWS[Number(event.key) - 1]) go(another(VIEWS[Number(event.key) - 1][0]));
  return undefined;
}

const THEMES = ["system", "light", "dark"];
const theme = document.getElementById("theme");

/** Shows the theme that is chosen; turn: chooses the next one. */
function themed(turn) {
  const root = document.documentElement;
  const now = root.dataset.theme ?? THEMES[0];
  const next = turn ? THEMES[(THEMES.indexOf(now) + 1) % THEMES.length] : now;
  if (next === THEMES[0]) {
    delete root.dataset.theme;
    localStorage.removeItem("theme");
  } else {
    root.dataset.theme = next;
    localStorage.setItem("theme", next);
  }
  replace(theme, { system: "◐", light: "☀", dark: "☾" }[next], el("span", ` ${next}`));
  theme.setAttribute("aria-label", `Colours: ${next}. Press for ${THEMES[(THEMES.indexOf(next) + 1) % THEMES.length]}`);
}

theme.addEventListener("click", () => themed(true));
themed(false);
document.getElementById("help-open").addEventListener("click", () => help.showModal());
document.addEventListener("click", follow);
document.addEventListener("keydown", keys);
listen(draw);
draw();
