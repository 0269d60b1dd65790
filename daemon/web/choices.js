// Choices of several views: which times are shown, by which label a picture or a table is split, what is left out.
import * as api from "./api.js";
import { choice, el, later, replace } from "./dom.js";
import { called } from "./format.js";
import { another, focusOf, functionAt, go, question, to } from "./state.js";
import { equals } from "./toolbar.js";

/** The values of the label by which the address splits, largest first, and how many others there are. */
export async function valuesOf(state, most, signal) {
  const { since, until, match, dimension, scope } = question(state);
  const params = { since, until, match, dimension, scope, by: state.split, limit: "1000" };
  const rows = (await api.rows(api.path(state.build, "/groups", params), 20000, signal)).rows;
  const all = rows.map((row) => ({ value: row[`label_${state.split}`] ?? "", seconds: row.seconds }));
  all.sort((a, b) => b.seconds - a.seconds);
  return { values: all.slice(0, most).map((row) => row.value), others: Math.max(0, all.length - most) };
}

/** The matchers of the address, and that for a value of the label by which it splits. */
export const matchOf = (state, value) => [...state.match, equals(state.split, value)];

/** The way back from a time and labels that leave nothing; null where none are chosen. */
export const unfiltered = (state) =>
  state.since || state.until || state.match.length
    ? el("a", to(state, { since: "", until: "", match: [] }), "Remove all filters")
    : null;

/** Which times are shown, where the data has both. answer: a report or a tree; changes: that go with another choice. */
export function timeChoice(answer, changes = {}) {
  if (!answer.stacks) return null;
  const all = [
    ["measured", "Times: measured"],
    ["calls", "Times: by calls"],
  ];
  return choice({ id: "times", "aria-label": "Times" }, all, answer.time, (time) => go({ time, ...changes }));
}

/** By which label the picture is split; the names are fetched when they are wanted. changes: that go with it. */
export function splitChoice(state, changes = {}) {
  const about = { id: "split", "aria-label": "Split by label" };
  const listed = (names) =>
    choice(
      about,
      [["", "No split"], ...[...new Set(names)].filter(Boolean).map((name) => [name, `Split by ${name}`])],
      state.split,
      (split) => go({ split, ...changes }),
    );
  const select = listed([state.split]);
  later(api.labelNames(state.build), (names) => {
    replace(select, [...listed([...names, state.split]).options]);
    select.value = state.split;
  });
  return select;
}

/** A function in the other views that show one: [text, link]. */
export function otherViews(state, address, build) {
  const [at, focus] = [functionAt(state, address, build), focusOf(state, address, build)];
  const all = [
    ["report", "Callers and callees", at],
    ["graph", "In the call graph", { focus }],
    ["flame", "In stacks", { mode: "sandwich", focus }],
    ["code", "Code", at],
  ];
  const link = ([view, text, changes]) => [text, to(state, { ...another(view), ...changes })];
  return all.filter(([view]) => view !== state.view).map(link);
}

/** The keys of boxes that the address leaves out under a name. */
export const leftOut = (state, name) => state[name].split("~").filter(Boolean);

/** Ways to leave out one more box: [text, link]. kinds: [name in the address, text of a menu, how it reads]. */
export const leaving = (state, kinds, key, changes) =>
  kinds.map(([name, text]) => {
    const keys = [...new Set([...leftOut(state, name), key])].join("~");
    return [text, to(state, { [name]: keys, at: "", ...changes })];
  });

/** What is left out, each with a way back, and what that means; null without any. names: of boxes by their keys. */
export function removals(state, kinds, names, meaning) {
  const chip = (name, text, key) => {
    const what = `${text} ${called(names.get(key) ?? decodeURIComponent(key))}`;
    const keys = leftOut(state, name).filter((other) => other !== key);
    const link = to(state, { [name]: keys.join("~"), at: "" });
    return el("a.chip", { ...link, "aria-label": `Remove: ${what}` }, `${what} ×`);
  };
  const chips = kinds.flatMap(([name, , text]) => leftOut(state, name).map((key) => chip(name, text, key)));
  return chips.length ? el("p.bar", chips, meaning) : null;
}
