// Verdicts on the newest versions of programs: which watched functions changed, and whether that is real.
import * as api from "./api.js";
import { changeOf, interval, METRICS } from "./compare_words.js";
import { el } from "./dom.js";
import * as format from "./format.js";
import { another, to } from "./state.js";
import { equals, matcherOf } from "./toolbar.js";

const LINES = 3; // programs above the table
const KINDS = {
  increased: { rank: 0, look: "delta more", sign: "▲" },
  decreased: { rank: 1, look: "delta less", sign: "▼" },
  waiting: { rank: 2, look: "delta same", sign: "?", text: "cannot tell yet" },
  "no-difference": { rank: 3, look: "delta same", sign: "≈", text: "no difference" },
};

/** All verdicts, the latest first. There are none for readers of a part of the profiles. */
export async function verdicts(signal) {
  try {
    return (await api.rows("api/v1/verdicts", 1000, signal)).rows.filter((r) => KINDS[r.verdict]);
  } catch (error) {
    if (error.status === 403) return [];
    throw error;
  }
}

/** Those on the newest versions of these builds: of each watch, the ones on the version that it judged last. What
 *  changed stands first, the largest change before the others. */
export function latest(all, builds) {
  const ids = new Set(builds.map((b) => b.build_id));
  const newest = new Map();
  const own = all.filter((r) => {
    if (!ids.has(r.build_id_after)) return false;
    const watch = `${r.watch}\n${r.program}`;
    if (!newest.has(watch)) newest.set(watch, r.after);
    return newest.get(watch) === r.after;
  });
  const size = (r) => Math.abs(r.change ?? 0);
  return own.sort((a, b) => KINDS[a.verdict].rank - KINDS[b.verdict].rank || size(b) - size(a));
}

/** A verdict as a sentence. */
function sentence(r) {
  const { text } = KINDS[r.verdict];
  const range = interval(r);
  const by = r.verdict === "waiting" ? r.why : `${changeOf(r)}${range ? `, ${range}` : ""}`;
  const metric = METRICS.find((m) => m.key === r.metric)?.title.toLowerCase() ?? r.metric;
  return `${r.function}, ${metric}: ${text ?? r.verdict}${by ? ` (${by})` : ""}`;
}

/** A side of the comparison: uploads that are watched and have this version, which may be a build-id. */
function sideOf(r, version, build) {
  const watched = r.watch.split(",").map(matcherOf);
  return build.startsWith(version) ? watched : [...watched, equals("version", version)];
}

/** What changed in programs, each with its name, as a line above the table. */
export function changes(groups, all, state) {
  const found = groups
    .filter((g) => !g.folded)
    .map((g) => ({ name: g.name, rows: latest(all, g.builds) }))
    .filter(({ rows }) => rows.length && KINDS[rows[0].verdict].rank < KINDS.waiting.rank)
    .sort((a, b) => KINDS[a.rows[0].verdict].rank - KINDS[b.rows[0].verdict].rank);
  if (found.length === 0) return null;
  const line = ({ name, rows }) => el("span", {}, `${name} ${rows[0].after}: `, verdictCell(rows, state));
  const rest = found.length > LINES ? `and ${format.several(found.length - LINES, "other", "others")}` : null;
  return el("p", { class: "changes" }, found.slice(0, LINES).map(line), rest);
}

/** What changed most, as a link to the whole comparison; all verdicts on hover. */
export function verdictCell(rows, state) {
  if (rows.length === 0) return "";
  const [first] = rows;
  const { look, sign, text } = KINDS[first.verdict];
  const about = `${first.after} after ${first.before}. ${rows.map(sentence).join("; ")}.`;
  const sides = {
    ...another("compare"),
    build: first.build_id_before,
    against: first.build_id_after,
    match: sideOf(first, first.before, first.build_id_before),
    bmatch: sideOf(first, first.after, first.build_id_after),
    metric: first.metric,
  };
  const said = text ?? `${changeOf(first)} ${format.shortName(first.function)}`;
  const link = { ...to(state, sides), class: look, tabIndex: -1, title: about, "aria-label": `${said}: ${about}` };
  return el("a", link, el("span", { "aria-hidden": "true" }, `${sign} `), said);
}
