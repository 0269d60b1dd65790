// What is rare: other ways to ask the same, copies and exports of the report that is shown.
import * as api from "./api.js";
import { button, choice, copy, el, labelled, say } from "./dom.js";
import * as format from "./format.js";
import { menu } from "./menu.js";
import { go, question } from "./state.js";

const SCOPES = [
  ["", "automatic"],
  ["program", "the program, all its builds"],
  ["build", "this build in the program"],
  ["everywhere", "this build in every program"],
];
const FORMATS = ["text", "pprof", "callgrind", "speedscope", "csv", "dot"];
const SAVED = ["pprof", "callgrind", "csv"];

const scope = (state) => {
  const select = choice({ id: "scope" }, SCOPES, state.scope, (value) => go({ scope: value }));
  return labelled("Scope", select);
};

function staticArcs(state) {
  const change = () => go({ static: box.checked ? "1" : "" });
  const box = el("input", { id: "static", type: "checkbox", checked: state.static === "1", onchange: change });
  const text = "Static arcs: cycles also follow calls that are in the machine code but were never executed";
  return el("p.bar.check", box, el("label", { for: "static" }, text));
}

/** A command of profctl for a terminal, with the uploads that the address chooses. */
export function command(words, state) {
  const all = ["profctl", ...words];
  for (const name of ["since", "until"]) if (state[name]) all.push(`--${name}`, state[name]);
  for (const m of state.match) all.push("--match", m);
  return all.map(format.quote).join(" ");
}

/** The same question. */
function reportCommand(state) {
  const words = ["report", state.build];
  if (state.static) words.push("--static");
  for (const name of ["scope", "time", "dimension"]) if (state[name]) words.push(`--${name}`, state[name]);
  return command(words, state);
}

function copies(url, state) {
  const fetched = (what, name) => () =>
    api.text(url(what)).then(
      (text) => copy(text, name),
      (error) => say(error.message),
    );
  return el(
    "p.bar",
    button("Copy link", () => copy(location.href, "Link")),
    button("Copy profctl command", () => copy(reportCommand(state), "Command")),
    button("Copy gprof text", fetched({ format: "gprof", static: "", dimension: "", time: "" }, "gprof listing")),
    button("Copy JSON", fetched({ format: "json", limit: 0 }, "JSON")),
  );
}

function exports(url, state) {
  const link = (f) => {
    const href = url({ format: f, limit: f === "dot" ? undefined : 0 });
    const download = SAVED.includes(f) ? `profd-${state.build.slice(0, 12)}.${f}` : false;
    return el("a", { href, target: "_blank", rel: "noopener", download }, f);
  };
  const json = el("a", { href: url({ format: "json", limit: 0 }), target: "_blank", rel: "noopener" }, "JSON");
  return el("p.bar", "Open or save as", json, FORMATS.map(link));
}

export function shareMenu(state) {
  const url = (what) =>
    new URL(api.path(state.build, "/report", { ...question(state), ...what }), document.baseURI).href;
  return menu(
    "more",
    "Share, export, and more choices",
    el("span", { "aria-label": "More", role: "img" }, "⋯"),
    el("div", copies(url, state), exports(url, state), scope(state), staticArcs(state)),
  );
}
