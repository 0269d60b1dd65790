// Numbers as people read them. Sums beyond 2^53 come as strings ("…_str", or strings in columns) and stay exact.
const whole = new Intl.NumberFormat("en");

export function count(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? whole.format(BigInt(value)) : whole.format(value);
}
/** A number, or its exact decimal string where the field has one. */
export const exact = (row, field) => count(row[`${field}_str`] ?? row[field]);

/** A count and its noun: "1 host", "2 hosts". */
export const several = (n, one, many) => `${count(n)} ${n === 1 ? one : many}`;
/** The same of a field that may have an exact string. */
export const many = (row, field, one, several) => `${exact(row, field)} ${row[field] === 1 ? one : several}`;

/** At most three significant digits of what is below 1000. */
const three = (n) => n.toFixed(n >= 99.95 ? 0 : n >= 9.995 ? 1 : 2);
/** Units are chosen after rounding: 999.7 ms is "1.00 s". */
const fitting = (units, n) => units.find(([size]) => n >= 0.9995 * size) ?? units.at(-1);
const SIZES = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];
const SMALL = 1e-6; // what arithmetic adds to a number
const TIMES = [
  [1, "s"],
  [1e-3, "ms"],
  [1e-6, "µs"],
  [1e-9, "ns"],
];

/** Of a count that is an average: what is above 0 does not read 0. */
export function short(value) {
  const n = Number(value);
  if (n > 0 && n < 0.0005) return "<0.001";
  if (n < 10000) return count(n);
  const [size, unit] = fitting(SIZES, n);
  return `${three(n / size)} ${unit}`;
}

/** "0.25", "8.50", "812", "4.31 k". */
export const rate = (n) => (n > 0 && n < 0.005 ? "<0.01" : n > 0 && n < 9.995 ? n.toFixed(2) : short(Math.round(n)));

/** Calls in each call: exact where they divide, else two places. */
export const ratio = (n) => (Number.isNaN(n) ? "" : Number.isInteger(n) ? count(n) : rate(n));

/** Sums of the same ticks in another order differ in their last bits. What lies on a limit, but for these bits, is
 * above it, so that every view shows the same digits; the rule of amount_nudge() in render/amount.c. */
const nudged = (value) => value * (1 + 1e-9);

/** The significant digits of a time of that number of ticks; the rule of amount_digits() in render/amount.c. */
const digits = (ticks) => (nudged(ticks) < 10 ? 1 : nudged(ticks) < 1000 ? 2 : 3);

/** ticks: that the time comes from, where it is no exact one. */
export function seconds(value, ticks = Infinity) {
  if (!Number.isFinite(value)) return "";
  if (digits(ticks) < 3 && Math.abs(value) < 3600) return rough(Number(nudged(value).toPrecision(digits(ticks))));
  const n = Math.abs(value);
  if (n === 0) return "0";
  if (n >= 3600) return `${(value / 3600).toFixed(2)} h`;
  const [size, unit] = fitting(TIMES, n);
  const sign = value < 0 ? "-" : "";
  if (n / size < 0.005) return `${sign}<0.01 ${unit}`;
  return sign + (size === 1 && n < 99.995 ? n.toFixed(2) : three(n / size)) + ` ${unit}`;
}

/** Without zeros that would claim more. */
function rough(value) {
  const text = seconds(value);
  return text.includes(".") ? text.replace(/\.?0+ /, " ") : text;
}

/** The largest and the smallest number of a list, however long it is. */
export const largest = (list, from = Number.NEGATIVE_INFINITY) => list.reduce((a, b) => Math.max(a, b), from);
export const least = (list) => list.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);

/** How amounts of a dimension read: times, or plain numbers of whatever else was sampled. totals: of the report, so
 * that times have the digits of their ticks; of: the time that a quotient comes from. Its between(low, high) is an
 * interval of such amounts. */
export function amounts(dimension, totals) {
  const timed = ["seconds", "wall", undefined].includes(dimension);
  const ticksOf = (value) => (totals?.seconds > 0 ? (Math.abs(value) * totals.ticks) / totals.seconds : undefined);
  const amount = timed
    ? (value, of = value) => seconds(value, ticksOf(of))
    : (value) => (Number.isFinite(value) ? short(Math.abs(value) >= 1 ? value : Number(value.toPrecision(3))) : "");
  amount.between = (low, high) => between(low, high, timed, timed ? ticksOf(high) : undefined);
  return amount;
}

/** A self time: "~" where it is an estimate, as functions share bins of a histogram, and what it may be instead. */
export const self = (amount, value, least) => (Number.isFinite(least) ? `~${amount(value)}` : amount(value));
export const selfRange = (amount, least, most) =>
  Number.isFinite(least) ? `estimated: ${amount(least)} to ${amount(most)}` : "";

/** As percent() shows it; the rule of amount_round_percent() in render/amount.c. */
export const shownPercent = (value, ticks) =>
  digits(ticks) < 3 && value > 0 ? Number(nudged(value).toPrecision(2)) : value;
export const percent = (value, ticks = Infinity) => {
  if (!Number.isFinite(value)) return "";
  if (digits(ticks) < 3 && value >= 0.005) return `${shownPercent(value, ticks)} %`;
  const n = Math.abs(value);
  if (n === 0) return "0 %";
  return n < 0.0005 ? "<0.001 %" : `${value.toFixed(n < 0.0995 ? 3 : 2)} %`;
};
/** A share of a whole that has that number of ticks. */
export const share = (value, ticks) => percent(value, (value * ticks) / 100);
export const signed = (text, value) => (value > 0 ? `+${text}` : text);

export function ago(time) {
  if (!time) return "";
  const s = (Date.now() - new Date(time).getTime()) / 1000;
  const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  for (const [size, unit] of [
    [86400, "day"],
    [3600, "hour"],
    [60, "minute"],
  ]) {
    if (Math.abs(s) >= size) return relative.format(-Math.round(s / size), unit);
  }
  return relative.format(-Math.max(0, Math.round(s)), "second");
}

const two = (n) => String(n).padStart(2, "0");
const day = (at) => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
const clockOf = (at) => `${two(at.getHours())}:${two(at.getMinutes())}`;
const zone = new Intl.DateTimeFormat("en", { timeZoneName: "short" });
const zoneOf = (at) => zone.formatToParts(at).find((part) => part.type === "timeZoneName").value;

/** A time in UTC. */
export const utc = (time) =>
  time
    ? new Date(time)
        .toISOString()
        .replace("T", " ")
        .replace(/(\.\d+)?Z$/, " UTC")
    : "";
/** A time of the reader's clock, with its zone. */
export function moment(time) {
  if (!time) return "";
  const at = new Date(time);
  return `${day(at)} ${clockOf(at)}:${two(at.getSeconds())} ${zoneOf(at)}`;
}
/** For a title: the reader's clock, and UTC where that is another one. */
export const both = (time) => [...new Set([moment(time), utc(time)])].join(", ");

/** A time of the reader's clock, short: "17:05" of today, "Nov 22 17:05" of this year, else with the year. */
export function clock(time) {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return time;
  if (at.toDateString() === new Date().toDateString()) return clockOf(at);
  const year = at.getFullYear() === new Date().getFullYear() ? {} : { year: "numeric" };
  return `${at.toLocaleDateString("en", { month: "short", day: "numeric", ...year })} ${clockOf(at)}`;
}
/** A time range as the address has it, short. */
export function range(since, until) {
  const short = (text) => (/^\d{4}-/.test(text) ? clock(text) : text);
  return `${short(since) || "beginning"} – ${short(until) || "now"}`;
}
/** A time range; one moment where both ends are in the same second. */
export const span = (first, last) => [...new Set([both(first), both(last)])].join(" to ");
export const base = (path) => (path || "").replace(/^.*\//, "");
export const brief = (id) => (id.length > 12 ? `${id.slice(0, 12)}…` : id);
/** A name of C++ without its template arguments, like names=short of the interface. */
export function shortName(name) {
  if (/operator ?[<>-]/.test(name)) return name;
  let short = name.replace(
    /std::(__cxx11::)?basic_string<char, std::char_traits<char>, std::allocator<char> ?>/g,
    "std::string",
  );
  for (let before = ""; before !== short;) {
    before = short;
    short = short.replace(/(?<=[\w:])<[^<>]*>/g, "\0"); // from the inside out
  }
  return short.replaceAll("\0", "<…>");
}
/** A name without the list of arguments at its end. */
function bare(name) {
  const text = name.replace(/ \[clone .*$/, "").replace(/( const| volatile| &&?)+$/, "");
  if (!text.endsWith(")")) return text;
  let depth = 0;
  let at = text.length;
  do depth += { ")": 1, "(": -1 }[text[--at]] ?? 0;
  while (depth > 0 && at > 0);
  const rest = text.slice(0, at);
  return depth || !rest || /(operator| )$/.test(rest) ? text : rest; // "no symbol (library)" has no arguments
}
const ANONYMOUS = "(anonymous namespace)";
/** A name without its result, which only templates have. */
const nameless = (text) =>
  /\boperator\b/.test(text)
    ? text
    : text
        .replaceAll(ANONYMOUS, "\0")
        .replace(/^[^({]* (?=[^<> ]*::)/, "")
        .replaceAll("\0", ANONYMOUS);

/** A name for a sentence: without template arguments, arguments and result. */
export const called = (name) => nameless(bare(shortName(name)));

/** A name of at most n characters where that is enough: arguments go first, then namespaces. */
export function shorten(name, n) {
  if (name.length <= n) return name;
  let text = nameless(bare(name));
  const whole = text.length;
  for (let at = text.indexOf("::"); at >= 0 && text.length > n; at = text.indexOf("::")) text = text.slice(at + 2);
  return text.length < whole && text.length < n - 2 ? `…::${text}` : text;
}
/** A name of at most n characters: at last its middle goes. */
export function clip(name, n) {
  let text = shorten(name, n);
  if (text.length <= n) return text;
  text = text.replace(/<…>$/, "");
  const end = Math.floor((n - 1) / 2);
  return `${text.slice(0, n - 1 - end)}…${text.slice(-end)}`;
}
/** A word for a shell. */
export const quote = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** An interval, both ends in one unit, with two digits of its half width, rounded outwards: "1.99–2.46 s". timed: it is
 *  one of times. ticks: of its high end; it has no more digits than an amount of these, which is shown inside it. */
function between(low, high, timed, ticks = Infinity) {
  const units = timed ? TIMES : [...SIZES, [1, ""]];
  const [size, unit] = fitting(units, Math.abs(high));
  const half = (high - low) / 2 / size;
  const whole = Math.floor(Math.log10(Math.max(1, Math.abs(high / size)))) + 1; // digits before the point
  const fine = half > 0 ? Math.max(0, Math.min(3, 5 - whole, 1 - Math.floor(Math.log10(half)))) : 2;
  const few = digits(ticks) < 3 && high < 3600;
  const known = few || size < 1 || whole > 2 ? Math.min(3, digits(ticks)) - whole : Infinity; // places of the amount
  const places = Math.min(fine, known);
  const shown = (value) => (value / 10 ** places).toFixed(Math.max(0, places));
  const [from, to] = [low, high].map((value) => (value / size) * 10 ** places);
  return `${shown(Math.floor(from + SMALL))}–${shown(Math.ceil(to - SMALL))}${unit ? ` ${unit}` : ""}`;
}
