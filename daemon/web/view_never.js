// Functions that no process entered: code that may be dead, largest first, and how sure that is.
import * as api from "./api.js";
import { el, replace, say } from "./dom.js";
import * as format from "./format.js";
import { another, go, question, to } from "./state.js";
import { filterField, Table } from "./table.js";
import { fitting, matcher, NARROW } from "./view_report.js";

const FEW = ["bytes"]; // columns where there is little space

/** The code of a function: its lines, where they are known. */
const whereIs = (row) => ({ ...another("code"), fn: row.address, of: "" });
const code = (row, state) => to(state, whereIs(row));

const bytes = (n) => (n >= 10240 ? `${format.count(Math.round(n / 1024))} KiB` : `${format.count(n)} B`);

const columns = (rows, state) => [
  {
    key: "name",
    title: "Function",
    value: (i) => rows[i].function,
    cell: (i) => [
      el(
        "a",
        { ...code(rows[i], state), tabIndex: -1, title: rows[i].function },
        fitting(format.shortName(rows[i].function)),
      ),
      rows[i].entered_elsewhere
        ? el(
            "span",
            { class: "chip", title: "Another copy of this function was entered; this one was not" },
            "other copy ran",
          )
        : null,
    ],
  },
  {
    key: "bytes",
    title: "Size",
    hint: "of its machine code, with all copies that were not entered",
    width: 7,
    numeric: true,
    value: (i) => rows[i].bytes,
    cell: (i) => bytes(rows[i].bytes),
  },
  {
    key: "copies",
    title: "Copies",
    hint: "clones that the compiler made, and that were not entered",
    numeric: true,
    value: (i) => rows[i].copies,
    cell: (i) => format.count(rows[i].copies),
  },
  {
    key: "address",
    title: "Address",
    width: 9,
    value: (i) => rows[i].address,
    cell: (i) => el("code", {}, rows[i].address),
  },
  {
    key: "file",
    title: "File",
    width: 18,
    value: (i) => rows[i].file,
    cell: (i) => el("span", { title: rows[i].file }, format.base(rows[i].file) || "–"),
  },
];

/** What can be said of all of them, and how sure it is. */
function headline(answer) {
  const { functions, counted_functions: counted, bytes: size, processes_started: processes, bound } = answer;
  const some =
    `${format.count(functions)} of ${format.several(counted, "function", "functions")} that count their calls ` +
    `were never called: ${bytes(size)} of code.`;
  const seen = format.several(processes, "process", "processes");
  const sure =
    bound === null
      ? ` Seen in ${seen}, in which calls may have been lost, so some of them may have run.`
      : ` With 95 % confidence, each runs in fewer than ${format.percent(100 * bound, 10)} of processes ` +
        `(none of ${seen} entered it).`;
  const known = answer.symbols === "yes" ? "" : " Only exported functions have names; of the others nothing is known.";
  return el("p", { class: "answer" }, el("strong", {}, some), sure, known);
}

function empty(answer, state) {
  if (answer.counted_functions > 0) return "Every function that counts its calls was called.";
  if (answer.symbols !== "yes") {
    return [
      "No function of this build that counts its calls has a name. Its executable or debug file has them: ",
      el("code", {}, "profctl symbols FILE"),
    ];
  }
  return [
    "No function of this build counts its calls, so none is known not to be called. Compile with ",
    el("code", {}, "-pg"),
    ". ",
    state.since || state.until || state.match.length
      ? el("a", to(state, { since: "", until: "", match: [] }), "Remove all filters")
      : null,
  ];
}

export async function draw(main, state, signal) {
  const { since, until, match, scope } = question(state);
  const answer = await api.json(
    api.path(state.build, "/never-called", { since, until, match, scope, limit: 0 }),
    signal,
  );
  const { rows } = answer;
  const bar = (...more) => el("div", { class: "bar compare" }, el("h2", {}, "Never called"), more);
  if (rows.length === 0) {
    replace(main, bar(), el("p", { class: "empty" }, empty(answer, state)));
    return;
  }
  const table = new Table({
    label: "Functions never called",
    columns: columns(rows, state),
    count: rows.length,
    state,
    sort: "bytes",
    tall: true,
    open: (i) => go(whereIs(rows[i])),
  });
  const apply = (text) => {
    const wanted = matcher(text);
    table.filter(wanted ? (i) => wanted(`${rows[i].function} ${rows[i].file}`) : undefined);
    say(`${format.count(table.rows.length)} of ${format.several(rows.length, "function", "functions")}`);
  };
  const filter = filterField(
    () => state,
    "Filter functions",
    "Filter (regex)",
    apply,
    () => table,
  );
  const note = "Code that was inlined into another function may have run. Start-up code is left out.";
  replace(main, bar(filter), headline(answer), table.node, el("p", { class: "hint" }, note));
  if (innerWidth < NARROW) table.show(FEW, true);
  apply(state.q);
  table.restore();
}
