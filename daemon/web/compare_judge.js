// What the comparison knows of the shares that its pictures show: which differences are more than chance.
import * as words from "./compare_words.js";
import { el } from "./dom.js";

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

/** The answer, above a table or a picture: the daemon's sentence, and why there is no more of it. */
export const answerOf = (diff, { table }) =>
  el(
    "p",
    { class: table.not_computed ? "warning answer" : "answer" },
    el("strong", diff.sentence),
    table.not_computed ? ` No verdicts: ${table.not_computed}.` : words.fewGroups(table, diff),
  );
