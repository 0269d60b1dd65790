// What the comparison knows of the shares that its pictures show: which differences are more than chance.
import * as api from "./api.js";
import { sideQuestion } from "./compare_sides.js";
import * as words from "./compare_words.js";
import { el } from "./dom.js";
import * as format from "./format.js";
import { NARROW } from "./table.js";

/** The report of each side in a format. */
export const reports = (state, about, signal) =>
  Promise.all(
    [["a", state.build], ["b", state.against]].map(([side, build]) =>
      api.json(api.path(build, "/report", { ...sideQuestion(state, side), names: "short", ...about }), signal),
    ),
  );

const NAMED = 8; // functions that are named above a picture
const NAMED_SLIM = 3;

/** diff: the answer of /api/v1/diff with all its rows. Gives of(name): {kind, sign, text, range} of a function's share
 *  with callees, or undefined if there is no verdict on it. kind: more, less, or same where it may be chance. */
export function judge(diff) {
  const table = diff.metrics.find((t) => t.metric === "total");
  const known = new Map();
  for (const row of table.rows)
    known.set(row.function, { ...words.verdict(row, diff, table), range: words.interval(row) });
  return { of: (name) => known.get(name), table };
}

/** What each process needs in all. */
export function wholeOf(diff) {
  const lines = words.whole(diff).map(({ kind, text }) => el("span", { class: `delta ${kind}` }, text));
  return lines.length ? el("p.whole", lines[0], lines[1] ? [" · ", lines[1]] : null) : null;
}

/** What the colours of a picture mean, and which of its functions have them, the largest difference first: a narrow box
 *  has no text. names: the functions of the picture. */
export function legend(diff, { table, of }, names) {
  const shown = new Set(names);
  const size = (row) => Math.abs((row.b ?? 0) - (row.a ?? 0));
  const rows = table.rows
    .filter((row) => shown.has(row.function) && of(row.function).kind !== "same")
    .sort((x, y) => size(y) - size(x));
  const one = (row) => {
    const { kind } = of(row.function);
    const name = format.clip(format.called(row.function), 30);
    const about = { class: `delta ${kind}`, title: row.function };
    return el("span", about, `${kind === "more" ? "▲" : "▼"} ${name} ${words.points(row)}`);
  };
  const named = rows.slice(0, innerWidth < NARROW ? NAMED_SLIM : NAMED);
  const rest = rows.length - named.length;
  return el(
    "p.hint.legend",
    el("span.delta.more", "▲ more"),
    el("span.delta.less", "▼ less in B,"),
    `in points of CPU share${named.length ? ":" : "."}`,
    named.map(one),
    rest ? `and ${format.several(rest, "other", "others")}.` : null,
    el("span", "≈ may be chance."),
  );
}

/** The answer, above a table or a picture: the daemon's sentence, and why there is no more of it. */
export const answerOf = (diff, { table }) =>
  el(
    "p",
    { class: table.not_computed ? "warning answer" : "answer" },
    el("strong", diff.sentence),
    table.not_computed ? ` No verdicts: ${table.not_computed}.` : words.fewGroups(table, diff),
  );
