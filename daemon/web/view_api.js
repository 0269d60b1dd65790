// The HTTP interface, readable: every path of openapi.json with its parameters.
import * as api from "./api.js";
import { el, replace } from "./dom.js";

/** A part of the document that stands elsewhere. */
const resolved = (part, all) =>
  part.$ref
    ? part.$ref
        .split("/")
        .slice(1)
        .reduce((at, key) => at[key], all)
    : part;

function valuesOf({ schema = {} }) {
  const one = schema.items ?? schema;
  return one.enum ? one.enum.join(", ") : (one.type ?? "");
}

function parameters(list, all) {
  if (!list?.length) return null;
  const line = (p) =>
    el("tr", {}, el("td", {}, el("code", {}, p.name)), el("td", {}, valuesOf(p)), el("td", {}, p.description ?? ""));
  const head = el(
    "tr",
    {},
    ["Parameter", "Values", "Meaning"].map((t) => el("th", { scope: "col" }, t)),
  );
  return el(
    "table",
    {},
    el("thead", {}, head),
    el(
      "tbody",
      {},
      list.map((p) => line(resolved(p, all))),
    ),
  );
}

function operation([path, { get }], all) {
  if (!get) return null;
  const plain = !path.includes("{");
  const name = el("code", {}, path);
  return el(
    "details",
    {},
    el("summary", {}, name, ` ${get.summary ?? ""}`),
    get.description ? el("p", {}, get.description) : null,
    plain ? el("p", {}, el("a", { href: path.slice(1), target: "_blank", rel: "noopener" }, `Open ${path}`)) : null,
    parameters(get.parameters, all),
  );
}

export async function draw(main, state, signal) {
  const all = await api.json("openapi.json", signal);
  const raw = el("a", { href: "openapi.json", target: "_blank", rel: "noopener" }, "openapi.json");
  replace(
    main,
    el("h1", {}, "HTTP interface"),
    el("p", {}, "All requests are GET or HEAD. The specification, for programs: ", raw, "."),
    el(
      "div",
      { class: "interface" },
      Object.entries(all.paths).map((entry) => operation(entry, all)),
    ),
  );
}
