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

function valuesOf(schema = {}) {
  const one = schema.items ?? schema;
  return one.enum ? one.enum.join(", ") : [one.type ?? ""].flat().join(" or ");
}

/** rows: [name, schema, meaning]. */
function listed(title, rows) {
  if (!rows.length) return null;
  const head = [title, "Values", "Meaning"].map((text) => el("th", { scope: "col" }, text));
  const line = ([name, schema, meaning]) =>
    el("tr", el("td", el("code", name)), el("td", valuesOf(schema)), el("td", meaning));
  return el("table", el("thead", el("tr", head)), el("tbody", rows.map(line)));
}

const parameters = (list = [], all) =>
  listed(
    "Parameter",
    list.map((part) => resolved(part, all)).map((p) => [p.name, p.schema, p.description ?? ""]),
  );

/** The fields of an answer in JSON; those of its rows after a dot. */
function fields({ responses }, all) {
  const found = [];
  const add = (schema, before) => {
    for (const [name, part] of Object.entries(schema.properties ?? {})) {
      const one = resolved(part, all);
      const items = one.items ? resolved(one.items, all) : {};
      found.push([before + name, one, one.description ?? ""]);
      add(items, `${before}${name}.`);
    }
  };
  const answer = Object.entries(responses["200"]?.content ?? {}).find(([kind]) => kind.includes("json"));
  if (answer) add(resolved(answer[1].schema ?? {}, all), "");
  return listed("Field of the answer", found);
}

function operation(path, method, one, all) {
  const plain = method === "get" && !path.includes("{");
  const parts = path.split(/(?<=.)(?=\/)/).flatMap((part, i) => [i ? el("wbr") : null, part]);
  const name = el("code", method === "get" ? null : `${method.toUpperCase()} `, parts);
  return el(
    "details",
    el("summary", name, ` ${one.summary ?? ""}`),
    one.description ? el("p", one.description) : null,
    plain ? el("p", el("a", { href: path.slice(1), target: "_blank", rel: "noopener" }, `Open ${path}`)) : null,
    parameters(one.parameters, all),
    fields(one, all),
  );
}

export async function draw(main, state, signal) {
  const all = await api.json("openapi.json", signal);
  const raw = el("a", { href: "openapi.json", target: "_blank", rel: "noopener" }, "openapi.json");
  replace(
    main,
    el("h1", "HTTP interface"),
    el("p", "Requests are GET or HEAD unless stated. The specification, for programs: ", raw, "."),
    el(
      "div.interface",
      Object.entries(all.paths).flatMap(([path, of]) =>
        Object.entries(of).map(([method, one]) => operation(path, method, one, all)),
      ),
    ),
  );
}
