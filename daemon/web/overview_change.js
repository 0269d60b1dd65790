// What changed in the newest build of a program since the build before it: asked of the daemon when the list is shown.
import * as api from "./api.js";
import { request } from "./compare_sides.js";
import { changed, changeOf, LEAST_PROCESSES, plan, verdict } from "./compare_words.js";
import { el, later } from "./dom.js";
import * as format from "./format.js";
import { another, to } from "./state.js";

const [LETTERS, SHORTEST] = [30, 10]; // characters of an answer, and of the name in it
const MOST = 5; // programs that are compared without being asked for: those with most CPU time

/** The two builds that appeared last, the newer one first. */
const newestTwo = (builds) =>
  [...builds].sort((a, b) => Date.parse(b.first_seen) - Date.parse(a.first_seen)).slice(0, 2);

/** Why nothing is said to have changed. */
function reason(diff, table) {
  const waits = table.rows.find((r) => r.verdict === "not-significant" && r.needs !== "nothing");
  if (table.not_computed || (table.rows.length && table.rows.every((r) => r.needs === "processes")))
    return `? needs about ${LEAST_PROCESSES} processes`;
  if (table.counts["too-few"] === table.counts.rows) return "? too few ticks yet";
  if (!waits) return "≈ no change";
  return `? ${waits.needs === "data" ? "needs " : ""}${plan(waits, diff)}`;
}

/** The first row of the comparison, if it changed: "▲ new: validate_coupon 53 %"; else why there is none. */
function answer(diff) {
  const table = diff.metrics.find((t) => t.metric === diff.lead);
  const [row] = table.rows;
  if (!row || !changed(row)) return { look: "same", text: reason(diff, table) };
  const { kind, sign, text } = verdict(row, diff, table);
  const alone = /^only/.test(row.verdict);
  const size = row.change === null ? format.percent(100 * (row.b || row.a || 0), 200) : changeOf(row);
  const look = { "+": "▲", "−": "▼" }[sign] ?? sign;
  const [before, after] = [`${look} ${alone ? `${text}: ` : ""}`, ` ${size}${sign === "?" ? ", few processes" : ""}`];
  const name = format.clip(format.called(row.function), Math.max(SHORTEST, LETTERS - before.length - after.length));
  return { look: kind, text: before + name + after };
}

/** Asks for the comparisons one after the other, so that the list has at most one question under way. */
export function comparisons(groups, state, signal) {
  const wanted = groups.filter((g) => !g.folded && g.builds.length > 1).slice(0, MOST);
  let before = Promise.resolve();
  return new Map(
    wanted.map((group) => {
      const [b, a] = newestTwo(group.builds);
      const sides = { ...state, build: a.build_id, against: b.build_id, bmatch: state.match };
      const url = `api/v1/diff?${api.query({ ...request(sides), metric: "time-per-process,self", limit: 200 })}`;
      const asked = before.then(() => api.json(url, signal));
      before = asked.catch(() => {});
      asked.catch(() => {}); // the link is there all the same
      return [group, asked];
    }),
  );
}

/** A link to the whole comparison; it says what changed most as soon as that is known. */
export function changeLink(group, asked, state) {
  const [b, a] = newestTwo(group.builds);
  const sides = { ...another("compare"), build: a.build_id, against: b.build_id, bmatch: state.match };
  const about = `${group.name}: the newest build against the one before`;
  const props = { ...to(state, sides), class: "chip", tabIndex: -1, title: about, "aria-label": about };
  const link = el("a", props, "compare");
  const show = (diff) => {
    const { look, text } = answer(diff);
    link.className = `delta ${look}`;
    link.title = `${about}. ${diff.sentence}`;
    link.setAttribute("aria-label", `${text}: ${link.title}`);
    link.replaceChildren(text);
  };
  if (asked) later(asked, show);
  return link;
}
