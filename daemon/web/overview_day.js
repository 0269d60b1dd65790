// What the last day says of all builds: load by the hour, services, versions, machines. One request for the whole list.
import * as api from "./api.js";
import { el, replace, svg } from "./dom.js";
import * as format from "./format.js";

const HOURS = 24;
const HOUR = 3600e3;
let asked = null; // promise of the rows by build-id

/** Answers are asked for again by the next drawing of the page. */
export const forget = () => (asked = null);

/** The window ends with the present hour, so that its beginning, and so the address, stays the same for an hour. */
function ask() {
  const since = new Date(Math.floor(Date.now() / HOUR) * HOUR - (HOURS - 1) * HOUR).toISOString();
  const url = `api/v1/load?${api.query({ by: ["service", "version"], step: "1h", since, limit: "1000" })}`;
  return api.rows(url, 20000).then(({ rows }) => new Map(rows.map((row) => [row.build_id, row])));
}

/** The days of builds as one: {load: by hour, services, versions, hosts, least}. hosts: the most machines of one hour
 *  and label, so there may be more if `least`. Builds that were not seen in the last day add nothing. */
export async function dayOf(builds) {
  const all = await (asked ??= ask());
  const rows = builds.map((b) => all.get(b.build_id)).filter(Boolean);
  const load = new Array(HOURS).fill(0);
  for (const row of rows) row.seconds.slice(0, HOURS).forEach((s, i) => (load[i] += s));
  const values = (name) => [...new Set(rows.flatMap((r) => r.labels[name]))].sort();
  const hosts = rows.reduce((most, r) => Math.max(most, r.hosts), 0);
  const busy = rows.reduce((n, r) => n + r.seconds.filter((s) => s > 0).length, 0);
  return { load, services: values("service"), versions: values("version"), hosts, least: busy > 1 && hosts > 0 };
}

/** The load of the day as a line. */
export function spark({ load }) {
  const most = format.largest(load);
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
    (d) => replace(place, show(d)),
    () => {},
  );
  return place;
}
