// Ticks and calls of the source lines of one function, from those of its addresses. Pure.

import { wilson } from "./stacks.js";

/** Within which a number of ticks is with 95 % probability: {low, high}. sure: ticks that are its own; possible: and
 *  those that may be. */
export function interval(answer, ticks, sure = ticks, possible = ticks) {
  const { ticks: all, overdispersion } = answer;
  if (!possible || !all) return {};
  const samples = all / overdispersion;
  const low = all * wilson(sure / all, samples).low;
  const high = all * wilson(Math.min(1, possible / all), samples).high;
  return { low: Math.min(low, ticks), high: Math.max(high, ticks) };
}

/** Ranges without overlaps, by ascending address; where lines contradict each other, the first one has the bytes. */
function rangesOf(answer, offset) {
  let end = 0;
  return answer.lines.flatMap((line) => {
    const from = Math.max(end, offset(line.address));
    const to = offset(line.address) + line.bytes;
    if (to <= from) return [];
    end = to;
    return [{ ...line, from, to }];
  });
}

/** The rows of a place: one for each line of each file; that without a file is for bytes of which no line is known. */
class Places {
  byName = new Map();

  constructor(ranges) {
    this.ranges = ranges;
    for (const r of ranges) this.of(r.file, r.line);
  }

  of(file = "", line = 0) {
    const key = `${file}\n${line}`;
    const fresh = { file, line, ticks: 0, seconds: 0, sure: 0, possible: 0, calls: 0, callees: [] };
    return this.byName.get(key) ?? this.byName.set(key, fresh).get(key);
  }

  /** The first range that ends behind an address. */
  first(address) {
    let [low, high] = [0, this.ranges.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ranges[middle].to <= address) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Which places have bytes of [low, high), and how many: {place, bytes}. */
  within(low, high) {
    const parts = [];
    let at = low;
    for (let i = this.first(low); i < this.ranges.length && this.ranges[i].from < high; i++) {
      const r = this.ranges[i];
      const [from, to] = [Math.max(r.from, low), Math.min(r.to, high)];
      if (from > at) parts.push({ place: this.of(), bytes: from - at });
      parts.push({ place: this.of(r.file, r.line), bytes: to - from });
      at = to;
    }
    if (at < high) parts.push({ place: this.of(), bytes: high - at });
    return parts;
  }

  addTicks(low, row) {
    const parts = this.within(low, low + row.bytes);
    const places = new Set(parts.map((part) => part.place));
    for (const { place, bytes } of parts) {
      place.ticks += (row.ticks * bytes) / row.bytes;
      place.seconds += (row.seconds * bytes) / row.bytes;
    }
    for (const place of places) {
      place.possible += row.ticks;
      if (places.size === 1) place.sure += row.ticks;
      else place.estimated = true;
    }
  }
}

/**
 * answer: of /addresses. Gives {rows, shared, lost}: rows by file and line, the file of the function's entry first and
 * then that with most time, each with ticks, seconds, calls, callees, and low and high (95 %, in ticks) where it may
 * have ticks; estimated: a bin covers several lines and is divided by their bytes. most: a call site has several
 * callees, and one may have jumped to another, so that calls is the most there were. shared: ticks of bins with bytes
 * of other functions, which are at no line. lost: calls of which the site is not known.
 */
export function linesOf(answer) {
  const start = BigInt(answer.function.address);
  const offset = (address) => Number(BigInt(address) - start);
  const ranges = rangesOf(answer, offset);
  const places = new Places(ranges);
  let shared = 0;
  let lost = 0;
  for (const row of answer.rows) {
    if (row.shared) shared += row.ticks;
    else places.addTicks(offset(row.address), row);
  }
  for (const call of answer.calls) {
    if (!answer.call_sites) {
      lost += call.calls;
      continue;
    }
    const { place } = places.within(offset(call.address) - 1, offset(call.address))[0]; // it returns behind the call
    place.calls += call.calls;
    place.most ||= place.callees.some((other) => other.address === call.address);
    place.callees.push(call);
  }
  const files = new Map();
  for (const { file, seconds } of places.byName.values()) files.set(file, (files.get(file) ?? 0) + seconds);
  const own = (row) => row.file === ranges[0]?.file;
  const byFile = (a, b) => files.get(b.file) - files.get(a.file) || (a.file < b.file ? -1 : 1);
  const order = (a, b) => own(b) - own(a) || (a.file === b.file ? a.line - b.line : byFile(a, b));
  const rows = [...places.byName.values()].sort(order);
  for (const row of rows) Object.assign(row, interval(answer, row.ticks, row.sure, row.possible));
  return { rows, shared, lost };
}

const CONTEXT = 5; // lines before and behind those that have code

/** The rows of a file with its text, and around them lines without code; {gap} stands for lines that are left out. */
export function withText(rows, file, text) {
  const known = new Map(rows.map((row) => [row.line, row]));
  const near = rows.flatMap(({ line }) => Array.from({ length: 2 * CONTEXT + 1 }, (_, i) => line - CONTEXT + i));
  const shown = [...new Set(near)].filter((n) => n >= 1 && n <= text.length).sort((a, b) => a - b);
  const all = shown.flatMap((line, i) => {
    const none = { file, line, ticks: 0, seconds: 0, calls: 0, callees: [] };
    const row = { ...(known.get(line) ?? none), text: text[line - 1] };
    return i && line > shown[i - 1] + 1 ? [{ gap: true, file, callees: [] }, row] : [row];
  });
  return [...all, ...rows.filter((row) => row.line > text.length)];
}

/** The rows of a file without its text: neighbours that have neither ticks nor calls are one, up to the line last. */
export function folded(rows) {
  const all = [];
  for (const row of rows) {
    const quiet = !row.ticks && !row.calls;
    if (quiet && all.at(-1)?.quiet) all.at(-1).last = row.line;
    else all.push({ ...row, quiet });
  }
  return all;
}
