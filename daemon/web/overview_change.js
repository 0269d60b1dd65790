// What changed in the newest build of a program since the build before it: asked of the daemon when the list is shown.
import * as api from "./api.js";
import { aloneCounts, changeOf, headline, METRICS } from "./compare_words.js";
import { el } from "./dom.js";
import * as format from "./format.js";
import { another, to } from "./state.js";

const MOST = 5; // programs that are compared without being asked for: those with most CPU time
const SHARE = METRICS.find((m) => m.key === "self");

/** The two builds that appeared last, the newer one first. */
const newestTwo = (builds) =>
  [...builds].sort((a, b) => Date.parse(b.first_seen) - Date.parse(a.first_seen)).slice(0, 2);

/** What one side alone has and the largest difference that is more than chance, or why there is none: {look, text}. */
function answer(diff) {
  const [table] = diff.metrics;
  const [nothing, rest] = headline(table, SHARE, diff);
  const alone = aloneCounts(diff);
  const changed = table.rows.filter((r) => /changed$/.test(r.verdict));
  if (changed.length) {
    const first = changed.reduce((a, b) => (Math.abs(b.change) > Math.abs(a.change) ? b : a));
    const up = first.change > 0;
    const text = `${up ? "▲" : "▼"} ${changeOf(first)} ${format.shortName(first.function)}`;
    return { look: up ? "more" : "less", text: [text, ...alone].join("; ") };
  }
  if (alone.length) return { look: "same", text: alone.join("; ") };
  const known = !table.not_computed && nothing.startsWith("No function changed") && !/cannot be told/.test(rest);
  return { look: "same", text: known ? "≈ no change" : "? cannot tell yet" };
}

/** Asks for the comparisons one after the other, so that the list has at most one question under way. */
export function comparisons(groups, signal) {
  const wanted = groups.filter((g) => !g.folded && g.builds.length > 1).slice(0, MOST);
  let before = Promise.resolve();
  return new Map(
    wanted.map((group) => {
      const [b, a] = newestTwo(group.builds);
      const url = `api/v1/diff?${api.query({ a: a.build_id, b: b.build_id, metric: SHARE.key })}`;
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
  const sides = { ...another("compare"), build: a.build_id, against: b.build_id };
  const about = `${group.name}: the newest build against the one before`;
  const props = { ...to(state, sides), class: "chip", tabIndex: -1, title: about, "aria-label": about };
  const link = el("a", props, "compare");
  asked?.then(
    (diff) => {
      const { look, text } = answer(diff);
      const said = `${about}. ${headline(diff.metrics[0], SHARE, diff).filter(Boolean).join(" ")}`;
      link.className = `delta ${look}`;
      link.title = said;
      link.setAttribute("aria-label", `${text}: ${said}`);
      link.replaceChildren(text);
    },
    () => {},
  );
  return link;
}
