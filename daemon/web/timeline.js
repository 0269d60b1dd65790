// Bars over time. A bar's place is its time and its width what the row covers: sums of old days are wider than a step.
import { svg } from "./dom.js";
import { largest, least } from "./format.js";

const STEPS = [
  ["1m", 60],
  ["5m", 300],
  ["15m", 900],
  ["1h", 3600],
  ["3h", 10800],
  ["6h", 21600],
  ["12h", 43200],
  ["1d", 86400],
  ["7d", 604800],
];
export const names = STEPS.map(([name]) => name);
export const secondsOf = (step) => STEPS.find(([name]) => name === step)?.[1] ?? 3600;

/** The finest step that makes at most that many bars of the range. */
export const stepFor = (seconds, most) =>
  (STEPS.find(([, width]) => seconds / width <= most) ?? STEPS[STEPS.length - 1])[0];

export const begin = (row) => Date.parse(row.time) / 1000;

/** The range, in seconds since 1970 at full steps, that holds the rows and the given times. */
export function axis(step, times) {
  const width = secondsOf(step);
  const known = times.filter((t) => Number.isFinite(t));
  const from = Math.floor(least(known) / width) * width;
  return { from, width, bars: Math.max(1, Math.ceil((largest(known) - from) / width)) };
}

/** Rectangles of a picture that is as wide as the axis has bars and `height` high; titles say what each is. */
export function bars({ from, width }, rows, height, value, title) {
  const most = largest(rows.map(value), 0);
  return rows.map((row) => {
    const high = most > 0 ? (value(row) / most) * (height - 2) : 0;
    const wide = Math.max(1, (row.width ?? width) / width);
    return svg(
      "rect",
      {
        x: (begin(row) - from) / width,
        width: wide - 0.12,
        y: height - Math.max(high, 0.7),
        height: Math.max(high, 0.7),
        class: row.exact === false ? "bar-inexact" : "",
      },
      svg("title", {}, title(row)),
    );
  });
}

const EVERY = [60, 300, 900, 1800, 3600, 10800, 21600, 43200, 86400, 2 * 86400, 7 * 86400, 30 * 86400, 365 * 86400];
const MARKS = 7; // at most, so that their texts do not touch

/** Round times of the reader's clock on an axis: {at: in bars, text}. */
export function ticks({ from, width, bars: count }) {
  const span = count * width;
  const every = EVERY.find((step) => span / step <= MARKS) ?? EVERY.at(-1);
  const text = (time) => {
    const at = new Date(time * 1000);
    if (every >= 86400) return at.toLocaleDateString("en", { month: "short", day: "numeric" });
    return at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  };
  const zone = new Date(from * 1000).getTimezoneOffset() * 60;
  const marks = [];
  for (let time = Math.ceil((from - zone) / every) * every + zone; time < from + span; time += every) {
    marks.push({ at: (time - from) / width, text: text(time) });
  }
  return marks;
}
