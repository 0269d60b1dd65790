// Numbers as people read them. Sums beyond 2^53 come as strings ("…_str", or strings in columns) and stay exact.
const whole = new Intl.NumberFormat("en");

export function count(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? whole.format(BigInt(value)) : whole.format(value);
}
/** A number, or its exact decimal string where the field has one. */
export const exact = (row, field) => count(row[`${field}_str`] ?? row[field]);

/** "1 host", "2 hosts". */
/** A count and its noun. */
export const several = (n, one, many) => `${count(n)} ${n === 1 ? one : many}`;
export const many = (row, field, one, several) => `${exact(row, field)} ${row[field] === 1 ? one : several}`;

export function short(value) {
  const n = Number(value);
  if (n < 10000) return count(n);
  for (const [size, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (n >= size) return `${(n / size).toPrecision(3)} ${unit}`;
  }
  return count(n);
}

export function seconds(value) {
  if (!Number.isFinite(value)) return "";
  const n = Math.abs(value);
  if (n === 0) return "0";
  if (n >= 3600) return `${(value / 3600).toFixed(2)} h`;
  if (n >= 100) return `${value.toFixed(0)} s`;
  if (n >= 1) return `${value.toFixed(2)} s`;
  if (n >= 1e-3) return `${(value * 1e3).toPrecision(3)} ms`;
  if (n >= 1e-6) return `${(value * 1e6).toPrecision(3)} µs`;
  return `${(value * 1e9).toPrecision(3)} ns`;
}

/** How amounts of a dimension read: times, or plain numbers of whatever else was sampled. */
export const amounts = (dimension) => (["seconds", "wall", undefined].includes(dimension) ? seconds : (value) => (Number.isFinite(value) ? short(Math.abs(value) >= 1 ? value : Number(value.toPrecision(3))) : ""));

/** A self time: "~" where it is an estimate, because functions share bins of a histogram, and what it may be instead. */
export const self = (amount, value, least) => (Number.isFinite(least) ? `~${amount(value)}` : amount(value));
export const selfRange = (amount, least, most) => (Number.isFinite(least) ? `estimated: ${amount(least)} to ${amount(most)}` : "");

export const percent = (value) => (Number.isFinite(value) ? `${value.toFixed(value !== 0 && Math.abs(value) < 0.1 ? 3 : 2)} %` : "");
export const signed = (text, value) => (value > 0 ? `+${text}` : text);

export function ago(time) {
  if (!time) return "";
  const s = (Date.now() - new Date(time).getTime()) / 1000;
  const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  for (const [size, unit] of [[86400, "day"], [3600, "hour"], [60, "minute"]]) {
    if (Math.abs(s) >= size) return relative.format(-Math.round(s / size), unit);
  }
  return relative.format(-Math.max(0, Math.round(s)), "second");
}

export const moment = (time) => (time ? new Date(time).toISOString().replace("T", " ").replace(/(\.\d+)?Z$/, " UTC") : "");
/** A time range; one moment where both ends are in the same second. */
export const span = (first, last) => [...new Set([moment(first), moment(last)])].join(" to ");
export const base = (path) => (path || "").replace(/^.*\//, "");
export const brief = (id) => (id.length > 12 ? `${id.slice(0, 12)}…` : id);
/** A word for a shell. */
export const quote = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
