// The load of a build over time. Dragging or the keys select a time range: it is a slider with times as values.
import * as api from "./api.js";
import { el, replace, say, svg } from "./dom.js";
import * as format from "./format.js";
import { go } from "./state.js";
import { pictureTable, plain } from "./table.js";
import { axis, bars, begin, secondsOf, stepFor, ticks } from "./timeline.js";

const LAST = 0.95; // of the width: behind it the text of a mark would be cut
const HEIGHT = 40;
const MOST = 200;
const stamp = (seconds) => new Date(seconds * 1000).toISOString().replace(".000", "");

/** A time as the fields above take it, as far as it can be drawn: absolute, or now less something. */
function timeOf(text, other) {
  const ago = /^(?:now)?-(\d+)([smhdw])$/.exec(text);
  if (ago) return Date.now() / 1000 - Number(ago[1]) * { s: 1, m: 60, h: 3600, d: 86400, w: 604800 }[ago[2]];
  if (/^\d{1,11}$/.test(text)) return Number(text);
  const time = Date.parse(text) / 1000;
  return Number.isFinite(time) ? time : other;
}

class Strip {
  constructor(range, rows, state, amount) {
    Object.assign(this, { range, rows, amount, from: 0, to: 0, held: null });
    this.readout = el("output", { class: "readout", "aria-hidden": "true" });
    this.brush = svg("rect", { class: "brush", y: 0, height: HEIGHT, width: 0 });
    const most = format.largest(rows.map((r) => r.seconds));
    const look = { id: "brush", viewBox: `0 0 ${range.bars} ${HEIGHT}`, preserveAspectRatio: "none", tabindex: 0 };
    const slider = {
      role: "slider",
      "aria-valuemin": 0,
      "aria-valuemax": range.bars,
      "aria-label":
        `Load over time, at most ${amount(most)} in a step. ` +
        "Arrow keys move the selection, Shift and arrow keys widen it, Enter applies it",
    };
    this.view = svg(
      "svg",
      { ...look, ...slider },
      bars(
        range,
        rows,
        HEIGHT,
        (r) => r.seconds,
        (r) => `${format.moment(r.time)}: ${amount(r.seconds)}`,
      ),
      this.brush,
    );
    const place = (text, other) => Math.max(0, Math.min(range.bars, (timeOf(text, other) - range.from) / range.width));
    const end = range.from + range.bars * range.width;
    if (state.since || state.until)
      this.choose(Math.floor(place(state.since, range.from)), Math.ceil(place(state.until, end)), false);
    else this.choose(range.bars, range.bars, false);
    this.view.addEventListener("keydown", (event) => this.key(event));
    this.view.addEventListener("pointerdown", (event) => this.down(event));
    this.view.addEventListener("pointermove", (event) => this.hover(event));
    this.view.addEventListener("pointerleave", () => replace(this.readout));
    this.view.addEventListener("pointerup", () => this.up());
    this.view.addEventListener("pointercancel", () => (this.held = null));
  }

  at(event) {
    const frame = this.view.getBoundingClientRect();
    return Math.max(0, Math.min(this.range.bars, ((event.clientX - frame.left) / frame.width) * this.range.bars));
  }

  /** Says what the bar under the pointer holds; while it is pressed, selects. */
  hover(event) {
    const at = this.at(event);
    if (this.held !== null) this.choose(Math.floor(Math.min(this.held, at)), Math.ceil(Math.max(this.held, at)), false);
    const time = this.range.from + Math.floor(at) * this.range.width;
    const load = this.rows.filter((r) => begin(r) <= time && time < begin(r) + (r.width ?? this.range.width));
    const sum = load.reduce((all, r) => all + r.seconds, 0);
    const chosen = this.held !== null && this.to > this.from;
    const words = chosen
      ? this.words()
      : `${format.moment(stamp(time))}: ${load.length ? this.amount(sum) : "no data"}`;
    replace(this.readout, words);
  }

  time = (bar) => stamp(this.range.from + bar * this.range.width);

  choose(from, to, announce = true) {
    Object.assign(this, { from, to });
    this.brush.setAttribute("x", from);
    this.brush.setAttribute("width", Math.max(0, to - from));
    const words = to > from ? this.words() : "no selection";
    this.view.setAttribute("aria-valuenow", to);
    this.view.setAttribute("aria-valuetext", words);
    if (announce) say(words);
  }

  /** What is selected. */
  words() {
    const { from, width } = this.range;
    const inside = this.rows.filter((r) => begin(r) >= from + this.from * width && begin(r) < from + this.to * width);
    const load = inside.reduce((sum, r) => sum + r.seconds, 0);
    return `${format.moment(this.time(this.from))} to ${format.moment(this.time(this.to))}: ${this.amount(load)}`;
  }

  down(event) {
    if (event.button !== 0) return;
    this.held = this.at(event);
    this.view.setPointerCapture(event.pointerId);
  }

  up() {
    if (this.held === null) return;
    this.held = null;
    this.apply();
  }

  apply() {
    if (this.to > this.from) go({ since: this.time(this.from), until: this.time(this.to) });
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

/** Times below the picture. */
function marks(range) {
  const mark = ({ at, text }) => el("span", { style: { left: `${(100 * at) / range.bars}%` } }, text);
  const shown = ticks(range).filter(({ at }) => at < LAST * range.bars);
  return el("div", { class: "ticks", "aria-hidden": "true" }, shown.map(mark));
}

/** The picture and its table; neither if there is no load. row: of the build. */
export async function strip(state, row, signal) {
  const now = Date.now() / 1000;
  const first = Math.min(Date.parse(row.first_seen) / 1000, now - 3600);
  if (!Number.isFinite(first)) return [null, null];
  const step = stepFor(now - first, MOST);
  const { match, scope, dimension: asked } = state;
  const url = api.path(state.build, "/groups", { step, match, scope, dimension: asked, limit: "1000" });
  const page = await api.rows(url, 2000, signal);
  const rows = page.rows.filter((r) => r.time);
  if (!rows.some((r) => r.seconds > 0)) return [null, null];
  const { dimension } = page.first;
  const amount = format.amounts(dimension);
  const what = ["seconds", undefined].includes(dimension) ? "CPU time" : dimension;
  const ends = rows.map((r) => begin(r) + (r.width ?? secondsOf(step)));
  const range = axis(step, [first, now, ...rows.map(begin), ...ends]);
  const { view, readout } = new Strip(range, rows, state, amount);
  const title = `${what} in steps of ${step}. Drag, or use the arrow keys, to select a time range.`;
  const line = (r) => [
    el("span", { title: format.utc(r.time) }, format.moment(r.time)),
    amount(r.seconds),
    format.exact(r, "calls"),
    format.exact(r, "processes_started"),
  ];
  const columns = [["From"], [what, 1], ["Calls", 1], ["Processes", 1]];
  const table = () => plain("Load over time", columns, rows.map(line));
  const summary = `load in ${format.many({ n: rows.length }, "n", "step", "steps")}`;
  return [
    el("div", { class: "strip", title }, view, readout, marks(range)),
    pictureTable(state, "load", summary, table),
  ];
}
