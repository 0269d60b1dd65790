// Bars over time, and the selection of a time range in them. A bar's place is its time and its width what the row
// covers: sums of old days are wider than a step.
import * as api from "./api.js";
import { el, replace, say, svg } from "./dom.js";
import { base, largest, least, moment } from "./format.js";
import { go } from "./state.js";
import { NARROW } from "./table.js";

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

/** A time of the address, from seconds since 1970. */
export const stamp = (seconds) => new Date(seconds * 1000).toISOString().replace(".000", "");
/** A time as the address has it, as far as it can be drawn: absolute, or now less something. */
export function timeOf(text, other) {
  const ago = /^(?:now)?-(\d+)([smhdw])$/.exec(text);
  if (ago) return Date.now() / 1000 - Number(ago[1]) * { s: 1, m: 60, h: 3600, d: 86400, w: 604800 }[ago[2]];
  if (/^\d{1,11}$/.test(text)) return Number(text);
  const time = Date.parse(text) / 1000;
  return Number.isFinite(time) ? time : other;
}
export const begin = (row) => Date.parse(row.time) / 1000;

/** The range, in seconds since 1970 at full steps, that holds the rows and the given times. */
export function axis(step, times) {
  const width = secondsOf(step);
  const known = times.filter((t) => Number.isFinite(t));
  const from = Math.floor(least(known) / width) * width;
  return { from, width, bars: Math.max(1, Math.ceil((largest(known) - from) / width)) };
}

const STILL = 3; // pixels that the pointer may move in a click
const [LETTER, LINE, EDGES] = [7, 6, 40]; // pixels: of the text of a mark, of its line, and beside a picture
const HEIGHT = 40; // of a picture, in its own units
const LEAST = 0.7; // height of a bar of what is little; nothing has none
const SPIKE = 4; // times the height that nine of ten bars have at most, above which a bar is cut
const ENOUGH = 12; // bars, of which fewer have no usual height

/** What the highest bar stands for: among many bars, a few spikes do not flatten all others, but are cut. */
export function ceiling(values) {
  const sorted = values.filter((v) => v > 0).sort((a, b) => a - b);
  const most = sorted.at(-1) ?? 0;
  return sorted.length < ENOUGH ? most : Math.min(most, SPIKE * sorted[Math.ceil(0.9 * sorted.length) - 1]);
}

/** Says that bars are cut, where some are. */
function cutText(values, text) {
  const top = ceiling(values);
  return largest(values, 0) > top ? ` Bars above ${text(top)} are cut.` : "";
}

/** The versions of a program, or of all, and when they appeared; none where they are not known. */
export async function versionsOf(program, signal) {
  if (program === "") return [];
  const url = `api/v1/versions?${api.query({ program: base(program), limit: "1000" })}`;
  return (await api.rows(url, 20000, signal).catch(() => ({ rows: [] }))).rows;
}

/** A mark where each version of a program appeared, above a picture of that time range. versions: rows of the
 *  interface; build: the one that is shown. A version that appeared before has no mark. Of marks whose texts would
 *  touch, that of the build stays, then the newest. A text that the right edge would cut stands left of its line. */
function versionMarks(range, versions, build) {
  const space = innerWidth < NARROW ? innerWidth - EDGES : innerWidth / 2; // about: the load stands beside a sentence
  const placed = versions.map(({ version, first, build_id: id }) => {
    const at = version ? (Date.parse(first) / 1000 - range.from) / range.width / range.bars : -1;
    const wide = (String(version).length * LETTER + LINE) / space;
    const left = at + wide > 1;
    return { version, at, left, own: id === build, from: left ? at - wide : at, to: left ? at : at + wide };
  });
  const shown = [];
  for (const mark of placed.sort((a, b) => b.own - a.own || b.at - a.at))
    if (mark.at >= 0 && mark.at <= 1 && shown.every((s) => mark.to < s.from || s.to < mark.from)) shown.push(mark);
  const node = ({ version, at, left }) => {
    const style = left ? { right: `${100 * (1 - at)}%` } : { left: `${100 * at}%` };
    return el(left ? "span.left" : "span", { style }, version);
  };
  const title = "versions, where they appeared";
  return shown.length ? el("div.marks", { title }, shown.sort((a, b) => a.at - b.at).map(node)) : null;
}

/** Rectangles of a picture that is as wide as the axis has bars; titles say what each is. */
function bars({ from, width }, rows, value, title) {
  const most = ceiling(rows.map(value));
  return rows.map((row) => {
    const high = value(row) > 0 ? Math.max(LEAST, Math.min(1, value(row) / most) * (HEIGHT - 2)) : 0;
    const wide = Math.max(1, (row.width ?? width) / width);
    return svg(
      "rect",
      {
        x: (begin(row) - from) / width,
        width: wide - 0.12,
        y: HEIGHT - high,
        height: high,
        class: value(row) > most ? "cut" : row.exact === false ? "bar-inexact" : "",
      },
      svg("title", title(row)),
    );
  });
}

const EVERY = [60, 300, 900, 1800, 3600, 10800, 21600, 43200, 86400, 2 * 86400, 7 * 86400, 30 * 86400, 365 * 86400];
const MARKS = 7; // at most, so that their texts do not touch
const MARKED = 0.95; // of the width: behind it the text of a mark would be cut

/** Round times of the reader's clock on an axis: {at: in bars, text}. */
function ticks({ from, width, bars: count }) {
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

/** Times below the picture. */
function tickMarks(range) {
  const mark = ({ at, text }) => el("span", { style: { left: `${(100 * at) / range.bars}%` } }, text);
  const shown = ticks(range).filter(({ at }) => at < MARKED * range.bars);
  return el("div.ticks", { "aria-hidden": "true" }, shown.map(mark));
}

/** Selects a time range in pictures over one axis, by dragging or by keys: the first one is a slider with times as
 *  values. label: what the pictures show; at(time): what they show there; between(from, to): what of a selection. Times
 *  are in seconds since 1970. */
class Brush {
  constructor(pictures, { id, range, state, label, at, between }) {
    Object.assign(this, { range, at, between, from: 0, to: 0, held: null });
    this.readout = el("output.readout", { "aria-hidden": "true" });
    this.marks = pictures.map(() => svg("rect.brush", { y: 0, height: "100%", width: 0 }));
    [this.slider] = pictures;
    const keys = "Arrow keys move the selection, Shift and arrow keys widen it, Enter applies it";
    const slider = { id, role: "slider", tabindex: 0, "aria-valuemin": 0, "aria-valuemax": range.bars };
    for (const [name, value] of Object.entries({ ...slider, "aria-label": `${label}. ${keys}` }))
      this.slider.setAttribute(name, value);
    this.slider.addEventListener("keydown", (event) => this.key(event));
    pictures.forEach((picture, i) => {
      picture.append(this.marks[i]);
      picture.addEventListener("pointerdown", (event) => this.down(event));
      picture.addEventListener("pointermove", (event) => this.hover(event));
      picture.addEventListener("pointerleave", () => replace(this.readout));
      picture.addEventListener("pointerup", () => this.up());
      picture.addEventListener("pointercancel", () => this.cancel());
    });
    const place = (text, other) => Math.max(0, Math.min(range.bars, (timeOf(text, other) - range.from) / range.width));
    const end = range.from + range.bars * range.width;
    if (state.since || state.until)
      this.choose(Math.floor(place(state.since, range.from)), Math.ceil(place(state.until, end)), false);
    else this.choose(range.bars, range.bars, false);
  }

  place(event) {
    const frame = event.currentTarget.getBoundingClientRect();
    return Math.max(0, Math.min(this.range.bars, ((event.clientX - frame.left) / frame.width) * this.range.bars));
  }

  /** Says what the bar under the pointer holds; while it is pressed, selects. */
  hover(event) {
    const place = this.place(event);
    const [low, high] = [Math.min(this.held, place), Math.max(this.held, place)];
    this.moved ||= Math.abs(event.clientX - this.pressed) > STILL;
    if (this.held !== null && this.moved) this.choose(Math.floor(low), Math.ceil(high), false);
    const time = this.timeAt(Math.floor(place));
    const chosen = this.held !== null && this.to > this.from;
    replace(this.readout, chosen ? this.words() : `${moment(stamp(time))}: ${this.at(time)}`);
  }

  timeAt = (bar) => this.range.from + bar * this.range.width;

  choose(from, to, announce = true) {
    Object.assign(this, { from, to });
    for (const mark of this.marks) {
      mark.setAttribute("x", from);
      mark.setAttribute("width", Math.max(0, to - from));
    }
    const words = to > from ? this.words() : "no selection";
    this.slider.setAttribute("aria-valuenow", to);
    this.slider.setAttribute("aria-valuetext", words);
    if (announce) say(words);
  }

  /** What is selected. */
  words() {
    const [from, to] = [this.timeAt(this.from), this.timeAt(this.to)];
    return `${moment(stamp(from))} to ${moment(stamp(to))}: ${this.between(from, to)}`;
  }

  down(event) {
    if (event.button !== 0) return;
    Object.assign(this, { held: this.place(event), pressed: event.clientX, moved: false, old: [this.from, this.to] });
    event.currentTarget.setPointerCapture(event.pointerId);
  }

  /** A click changes nothing. */
  up() {
    if (this.held !== null && this.moved) this.apply();
    this.held = null;
  }

  cancel() {
    if (this.held !== null) this.choose(...this.old, false);
    this.held = null;
  }

  apply() {
    if (this.to > this.from) go({ since: stamp(this.timeAt(this.from)), until: stamp(this.timeAt(this.to)) });
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { bars: last } = this.range;
    const step = {
      ArrowLeft: -1,
      ArrowDown: -1,
      ArrowRight: 1,
      ArrowUp: 1,
      PageUp: 10,
      PageDown: -10,
      Home: -last,
      End: last,
    }[event.key];
    if (step !== undefined && event.shiftKey) {
      const end = Math.max(0, Math.min(last, this.to + step));
      this.choose(Math.min(this.from, Math.max(0, end - 1)), end);
    } else if (step !== undefined) {
      const wide = Math.max(1, this.to - this.from);
      const from = Math.max(
        0,
        Math.min(last - wide, (this.to > this.from ? this.from : last) + (this.to > this.from ? step : -1)),
      );
      this.choose(from, from + wide);
    } else if (event.key === "Enter") this.apply();
    else if (event.key === "Escape") go({ since: "", until: "" });
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

/** Bars of several amounts over one axis, with versions above and times below; dragging or the keys select a range.
 *  parts: [title, value(row), text(value)]; captions: whether each picture has its title. versions: of versionsOf(). */
export function charts({ id, label, range, rows, parts, versions, state, captions = false }) {
  const picture = ([title, value, text]) => {
    const values = rows.map(value);
    const most = `at most ${text(largest(values, 0))} in a step`;
    const about = (r) => `${moment(r.time)}: ${text(value(r))}`;
    const look = { viewBox: `0 0 ${range.bars} ${HEIGHT}`, preserveAspectRatio: "none" };
    const view = svg(
      "svg",
      { ...look, role: "img", "aria-label": `${title}, ${most}` },
      bars(range, rows, value, about),
    );
    return { title, view, most, cut: cutText(values, text) };
  };
  const shown = parts.map(picture);
  const sums = (list) => {
    const one = ([title, value, text]) =>
      `${captions ? `${title} ` : ""}${text(list.reduce((n, r) => n + value(r), 0))}`;
    return list.length ? parts.map(one).join(", ") : "no data";
  };
  const { readout } = new Brush(
    shown.map(({ view }) => view),
    {
      ...{ id, range, state, label: `${label}: ${shown.map(({ title, most }) => `${title}, ${most}`).join("; ")}` },
      at: (time) => sums(rows.filter((r) => begin(r) <= time && time < begin(r) + (r.width ?? range.width))),
      between: (from, to) => sums(rows.filter((r) => begin(r) >= from && begin(r) < to)),
    },
  );
  const figure = ({ title, view, most, cut }) =>
    captions
      ? el("figure", el("figcaption", title, el("span.hint", ` ${most}.${cut}`)), view)
      : [view, cut ? el("p.hint", cut) : null];
  const title = `${label}. Drag, or use the arrow keys, to select a time range.`;
  const marks = versionMarks(range, versions, state.build);
  return el("div.strip", { title }, marks, shown.map(figure), readout, tickMarks(range));
}
