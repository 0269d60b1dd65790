// Choices of several views: which times are shown, and by which label a picture or a table is split.
import * as api from "./api.js";
import { el, replace } from "./dom.js";
import { go, question } from "./state.js";
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

const option = (value, text, now) => el("option", { value, selected: value === now }, text);

/** Which times are shown, where the data has both. answer: a report or a tree; changes: that go with another choice. */
export function timeChoice(answer, changes = {}) {
  if (!answer.stacks) return null;
  const select = el(
    "select",
    { id: "times", "aria-label": "Times", onchange: () => go({ time: select.value, ...changes }) },
    option("measured", "Times: measured", answer.time),
    option("calls", "Times: by calls", answer.time),
  );
  return select;
}

/** By which label the picture is split; the names are fetched when they are wanted. changes: that go with it. */
export function splitChoice(state, changes = {}) {
  const select = el("select", {
    id: "split",
    "aria-label": "Split by label",
    onchange: () => go({ split: select.value, ...changes }),
  });
  const fill = (names) =>
    replace(
      select,
      option("", "No split", state.split),
      names.map((name) => option(name, `Split by ${name}`, state.split)),
    );
  fill(state.split ? [state.split] : []);
  api.labelNames(state.build).then(
    (names) => fill([...new Set([...names, state.split])].filter(Boolean)),
    () => {},
  );
  return select;
}
