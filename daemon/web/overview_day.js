// What a time range says of all builds: load by step, services, versions, machines. One request for the whole list, or
// one for each value of the label that the list is grouped by.
import * as api from "./api.js";
import { el, later, replace, svg } from "./dom.js";
import * as format from "./format.js";
import { fleetQuestion } from "./state.js";
import { ceiling, secondsOf, stepFor, timeOf, versionsOf } from "./timeline.js";

const HOURS = 24;
const HOUR = 3600e3;
let asked = null; // promise of the rows by build-id
let versions = null; // promise of the versions by build-id, and when they appeared

/** Answers are asked for again by the next drawing of the page. */
export const forget = () => (asked = versions = null);

const byBuild = ({ rows, first }) => {
  const from = Date.parse(first.window.since) / 1000;
  return new Map(rows.map((row) => [row.build_id, { ...row, from, step: first.step }]));
};
/** Versions by build-id, for all rows of the overview at once. */
function byBuildId(rows) {
  const all = new Map(rows.map((row) => [row.build_id, []]));
  for (const row of rows) if (row.version) all.get(row.build_id).push(row);
  return all;
}
const load = (params, signal) =>
  api.rows(`api/v1/load?${api.query({ by: ["service", "version"], limit: "1000", ...params })}`, 20000, signal);

/** The window ends with the present hour, so that its beginning, and so the address, stays the same for an hour. */
const lastDay = () =>
  load({ step: "1h", since: new Date(Math.floor(Date.now() / HOUR) * HOUR - (HOURS - 1) * HOUR).toISOString() });

/** The rows by build-id of the chosen time and labels. first: when the first upload was, in ms. */
export function chosen(state, match, first, signal) {
  const now = Date.now() / 1000;
  const [from, to] = [timeOf(state.since, first / 1000), timeOf(state.until, now)];
  const step = stepFor(Math.max(to - from, HOURS * 3600), HOURS);
  const since = state.since || new Date(Math.floor(from / secondsOf(step)) * secondsOf(step) * 1000).toISOString();
  return load({ ...fleetQuestion(state), match, since, step }, signal).then(byBuild);
}

/** The days, or chosen times, of builds as one: {load: by step, services, versions, marks, hosts, least}. versions: the
 *  newest one first. marks: [version, step] of those that appeared then. hosts: the most machines of one hour and
 *  label, so there may be more if `least`. Builds that were not seen in the last day add nothing. */
export async function dayOf(builds) {
  const all = builds.some((b) => b.load) ? null : await (asked ??= lastDay().then(byBuild));
  const rows = builds.map((b) => b.load ?? all?.get(b.build_id)).filter(Boolean);
  const steps = all ? HOURS : format.largest(rows.map((r) => r.seconds.length));
  const load = new Array(steps).fill(0);
  for (const row of rows) row.seconds.slice(0, steps).forEach((s, i) => (load[i] += s));
  const known = await (versions ??= versionsOf().then(byBuildId));
  const times = builds.flatMap((b) => known.get(b.build_id) ?? []);
  const age = new Map(times.map(({ version, first }) => [version, Date.parse(first)]));
  const newest = (a, b) => (age.get(b) ?? 0) - (age.get(a) ?? 0) || (a < b ? 1 : -1);
  const values = (name) => [...new Set(rows.flatMap((r) => r.labels[name]))];
  const hosts = rows.reduce((most, r) => Math.max(most, r.hosts), 0);
  const busy = rows.reduce((n, r) => n + r.seconds.filter((s) => s > 0).length, 0);
  const place = ({ version, first }) => [version, (Date.parse(first) / 1000 - rows[0]?.from) / rows[0]?.step];
  const marks = all ? times.map(place).filter(([, at]) => at > 0 && at < steps) : []; // of one label: not told apart
  const labels = { services: values("service").sort(), versions: values("version").sort(newest) };
  return { load, ...labels, marks, hosts, least: busy > 1 && hosts > 0 };
}

/** Numbers as a line. about: what they are; marks: of dayOf(). */
export function line(numbers, about, marks = [], top = format.largest(numbers)) {
  const x = (i) => ((100 * (i + 0.5)) / numbers.length).toFixed(1);
  const points = numbers.map((n, i) => `${x(i)},${top > 0 ? 9.5 - 9 * Math.min(1, n / top) : 9.5}`).join("L");
  const look = { class: "spark", viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img" };
  const ticks = marks.map(([, at]) => `M${(100 * at) / numbers.length},0V10`).join("");
  const lines = [ticks ? svg("path.mark", { d: ticks }) : null, svg("path", { d: `M${points}` })];
  return svg("svg", { ...look, "aria-label": about }, lines, svg("title", about));
}

/** Times of steps as a line. what: they are; marks: of dayOf(). */
export function spark(load, what = "CPU time of its processes", marks = []) {
  const most = format.largest(load);
  const sum = load.reduce((a, b) => a + b, 0);
  const peak = most > 0 ? `, at most ${format.seconds(most)} in one of ${load.length} steps` : "";
  const fresh = marks.length ? `; appeared: ${marks.map(([version]) => version).join(", ")}` : "";
  return line(load, `${what} over time: ${format.seconds(sum)}${peak}${fresh}`, marks, ceiling(load));
}

/** A place that is filled when the day is known. */
export function filled(day, show) {
  const place = el("span");
  later(day, (d) => replace(place, show(d)));
  return place;
}
