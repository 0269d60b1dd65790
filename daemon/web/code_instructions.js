// Ticks and calls of the instructions of one function, from those of its addresses. Pure.
import { linesOf } from "./code_lines.js";
import { base, called } from "./format.js";

const FILE = "instructions"; // of linesOf: each instruction is a line of it

/** An offset in the function: "+0x1c". */
const placeOf = (offset) => `+0x${offset.toString(16)}`;

/** The text with the target's name, or its place in the function. */
function textOf(instruction, offset, size) {
  const { text, target, target_name: name } = instruction;
  const bare = target ? text.slice(0, -target.length) : `${text} → `;
  if (name) return `${bare}${called(name)}`;
  const at = target ? offset(target) : -1;
  return at >= 0 && at < size ? `${bare}${placeOf(at)}` : text;
}

/** The line of each address, by ascending address: undefined where it has none. */
function lineFinder(answer, offset) {
  let at = 0;
  const rangeOf = (line) => ({ line, from: offset(line.address), to: offset(line.address) + line.bytes });
  const ranges = answer.lines.map(rangeOf);
  return (address) => {
    while (at < ranges.length && ranges[at].to <= address) at++;
    return at < ranges.length && ranges[at].from <= address ? ranges[at].line : undefined;
  };
}

/** A row above the instructions of a line. */
const headOf = (line) => ({
  head: true,
  file: line?.file ?? "",
  line: line?.line ?? 0,
  name: line ? `${base(line.file)}:${line.line}` : "no line known",
  title: line ? `${line.file}:${line.line}` : "These bytes have no line in the debug information",
});

/**
 * answer: of /addresses, with instructions. Gives {rows, shared, lost} as linesOf does: rows by ascending address, and
 * above those of a source line a row of it. A direct call has its callee as goes, another one has rows below it.
 */
export function instructionsOf(answer) {
  const start = BigInt(answer.function.address);
  const offset = (address) => Number(BigInt(address) - start);
  const lines = answer.instructions.map((i, n) => ({ file: FILE, line: n + 1, address: i.address, bytes: i.bytes }));
  const all = linesOf({ ...answer, lines });
  const counted = new Map(all.rows.filter((row) => row.file === FILE).map((row) => [row.line, row]));
  const lineAt = lineFinder(answer, offset);
  const rows = [];
  let last;
  answer.instructions.forEach((instruction, n) => {
    const at = offset(instruction.address);
    const line = lineAt(at);
    const other = n === 0 || line?.file !== last?.file || line?.line !== last?.line;
    if (answer.lines.length && other) rows.push(headOf(line));
    last = line;
    const { callees = [], ...own } = counted.get(n + 1) ?? {};
    const direct = callees.length === 1 && instruction.target === callees[0].callee_address;
    const shown = textOf(instruction, offset, answer.function.bytes);
    const title = `${instruction.address}, ${instruction.bytes} byte${instruction.bytes > 1 ? "s" : ""}`;
    const text = direct ? instruction.text.slice(0, -instruction.target.length).trimEnd() : shown;
    const goes = direct ? callees[0] : undefined;
    rows.push({ ...own, bytes: instruction.bytes, at, name: placeOf(at), title, text, goes });
    if (!direct) for (const call of callees) rows.push({ call, calls: call.calls, name: "" });
  });
  return { ...all, rows };
}
