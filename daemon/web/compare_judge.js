// What the comparison knows of the shares that its pictures show: which differences are more than chance.
import * as words from "./compare_words.js";
import { el } from "./dom.js";
import * as format from "./format.js";
import { NARROW } from "./table.js";

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

/** The functions that a picture colours, the largest difference first: a narrow box has no text. */
function coloured(diff, table) {
  const size = (row) => Math.abs((row.b ?? 0) - (row.a ?? 0));
  const verdict = (row) => words.verdict(row, diff, table);
  const rows = table.rows.filter((row) => verdict(row).kind !== "same").sort((x, y) => size(y) - size(x));
  const one = (row) => {
    const { kind } = verdict(row);
    const name = format.clip(format.called(row.function), 30);
    const about = { class: `delta ${kind}`, title: row.function };
    return el("span", about, `${kind === "more" ? "▲" : "▼"} ${name} ${words.points(row)}`);
  };
  const shown = rows.slice(0, innerWidth < NARROW ? NAMED_SLIM : NAMED);
  const rest = rows.length - shown.length;
  const others = rest ? el("span.hint", `and ${format.several(rest, "other", "others")}`) : null;
  return rows.length ? el("p.hint.legend", "Coloured, in points:", shown.map(one), others) : null;
}

/** The answer, above a table or a picture: the daemon's sentence, and why there is no more of it. Above a picture also
 *  what is coloured. */
export const answerOf = (diff, { table, of: known }) => [
  el(
    "p",
    { class: table.not_computed ? "warning answer" : "answer" },
    el("strong", diff.sentence),
    table.not_computed ? ` No verdicts: ${table.not_computed}.` : words.fewGroups(table, diff),
  ),
  known ? coloured(diff, table) : null,
];
