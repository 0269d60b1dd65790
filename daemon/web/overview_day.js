// What the last day says of a build: load by the hour, services, versions, machines. One request for each build.
import * as api from "./api.js";
import { el, svg } from "./dom.js";
import * as format from "./format.js";

const HOURS = 24;
const DAY = HOURS * 3600e3;
const asked = new Map(); // build-id → promise of its day

export const isRecent = (build) => Date.now() - Date.parse(build.last_seen) < DAY;
/** Answers are asked for again by the next drawing of the page. */
export const forget = () => asked.clear();

function ask(build) {
  const since = `now-${HOURS}h`;
  const url = api.path(build.build_id, "/groups", { by: ["service", "version"], step: "1h", since, limit: "1000" });
  return api.rows(url, 5000).then(({ rows }) => rows);
}

/** The days of builds as one: {load: by hour, services, versions, hosts, least}. hosts: the most machines of one hour and
 *  label, so there may be more if `least`. Builds that were not seen in the last day add nothing. */
export async function dayOf(builds) {
  const recent = builds.filter(isRecent);
  for (const b of recent) if (!asked.has(b.build_id)) asked.set(b.build_id, ask(b));
  const rows = (await Promise.all(recent.map((b) => asked.get(b.build_id)))).flat();
  const load = new Array(HOURS).fill(0);
  for (const row of rows) {
    const hour = HOURS - 1 - Math.floor((Date.now() - Date.parse(row.time)) / 3600e3);
    if (hour >= 0 && hour < HOURS) load[hour] += row.seconds;
  }
  const values = (name) => [...new Set(rows.map((r) => r[`label_${name}`]).filter(Boolean))].sort();
  const hosts = rows.reduce((most, r) => Math.max(most, r.hosts), 0);
  return { load, services: values("service"), versions: values("version"), hosts, least: rows.length > 1 && hosts > 0 };
}

/** The load of the day as a line. */
export function spark({ load }) {
  const most = Math.max(...load);
  const sum = load.reduce((a, b) => a + b, 0);
  const peak = most > 0 ? `, at most ${format.seconds(most)} an hour` : "";
  const about = `CPU time of its processes in the last ${HOURS} hours: ${format.seconds(sum)}${peak}`;
  const points = load.map((s, i) => `${i + 0.5},${most > 0 ? 9.5 - (9 * s) / most : 9.5}`).join("L");
  const look = { class: "spark", viewBox: `0 0 ${HOURS} 10`, preserveAspectRatio: "none", role: "img" };
  return svg("svg", { ...look, "aria-label": about }, svg("path", { d: `M${points}` }), svg("title", {}, about));
}

/** A place that is filled when the day is known. */
export function later(day, show) {
  const place = el("span");
  day.then(
    (d) => place.replaceChildren(...[show(d)].flat()),
    () => {},
  );
  return place;
}
