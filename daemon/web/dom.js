// Makes elements without markup. Names come from untrusted users and reach the page as text only (CSP: trusted types).

// Invisible characters that change how text is shown: control characters and changes of the writing direction.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
const hex = (code, digits) => code.toString(16).padStart(digits, "0");
const escape = (c) => (c.codePointAt(0) < 128 ? `\\x${hex(c.codePointAt(0), 2)}` : `\\u{${hex(c.codePointAt(0), 4)}}`);
export const visible = (text) => String(text).replace(UNSEEN, escape);

const parts = (children) =>
  children
    .flat(Infinity)
    .filter((c) => c !== null && c !== undefined && c !== false)
    .map((c) => (c instanceof Node ? c : visible(c)));
const SPOKEN = new Set(["title", "placeholder", "aria-label", "aria-valuetext", "label"]);
const SVG = "http://www.w3.org/2000/svg";

/** Calls make(name, props, children) for "name.class.class", properties that may be left out, and children. */
const called =
  (make) =>
  (tag, ...rest) => {
    const [name, ...classes] = tag.split(".");
    const props = rest[0]?.constructor === Object ? rest.shift() : {};
    if (classes.length) props.class = classes.join(" ");
    return make(name, Object.entries(props), rest);
  };
const said = (key, value) => (SPOKEN.has(key) ? visible(value) : value);
const given = ([, value]) => value !== null && value !== undefined && value !== false;

/** An element: el("p.hint.wide", {…}, …). Properties, "class", "on…" handlers, "data-…"/"aria-…" attributes, style as
 *  an object. Children: nodes, strings, arrays, null. */
export const el = called((tag, props, children) => {
  const node = document.createElement(tag);
  if ("autocomplete" in node) node.autocomplete = "off"; // the address is the state: a browser restores none beside it
  for (const [key, value] of props.filter(given)) {
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [k, v] of Object.entries(value)) node.style.setProperty(k, v);
    else if (key.includes("-") || ["role", "for", "list", "scope"].includes(key))
      node.setAttribute(key, said(key, value));
    else node[key] = said(key, value);
  }
  add(node, children);
  return node;
});

/** A button that does something. more: other properties. */
export const button = (text, onclick, more = {}) => el("button", { type: "button", onclick, ...more }, text);

/** What scrolls is reached by the keyboard, and has a name. */
export const region = (tag, label, ...content) =>
  el(tag, { tabIndex: 0, role: "region", "aria-label": label }, content);

/** An element of a picture: attributes, "on…" handlers, style as text. */
export const svg = called((tag, props, children) => {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of props.filter(given)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "style")
      node.style.cssText = value; // by the object model: the policy forbids style attributes
    else node.setAttribute(key, said(key, value));
  }
  add(node, children);
  return node;
});

/** One by one: a call takes only some ten thousand arguments. */
export function add(node, children) {
  for (const part of parts(children)) node.append(part);
}

export function replace(node, ...children) {
  const all = document.createDocumentFragment();
  add(all, children);
  node.replaceChildren(all);
}

let missed = ""; // the id that refocus() did not find

/** What is drawn anew keeps the focus; the content of a menu that has closed leaves it to the menu. */
export function refocus(id) {
  const node = document.getElementById(id);
  missed = node ? "" : id;
  const closed = node?.closest("details:not([open])");
  (closed?.querySelector("summary") ?? node)?.focus({ preventScroll: true });
}

/** The same of what was put in after that. */
export function refocusLate() {
  if (missed && document.activeElement === document.body) refocus(missed);
  missed = "";
}

/** Shows what comes later; what does not come leaves the page as it is. */
export const later = (answer, show) => void answer.then(show, () => {});

/** The browser draws and answers the reader before the next piece of work. */
export const breath = () => new Promise((resolve) => setTimeout(resolve));

/** A choice of one of several. all: [value, text]; now: the value that is chosen; change(value). */
export function choice(about, all, now, change) {
  const option = ([value, text]) => el("option", { value, selected: value === now }, text);
  const select = el("select", { ...about, onchange: () => change(select.value) }, all.map(option));
  return select;
}

/** Names and what is known of each. */
export const facts = (all) => el("dl.facts", all.map(([name, ...known]) => [el("dt", name), el("dd", ...known)]));

/** A field behind its name. */
export const labelled = (text, field) => el("span.bar", el("label", { for: field.id }, text), field);

/** Says that a list of the interface was not read to its end. */
export function sayCut(what, count) {
  const place = document.getElementById("cut");
  const text = `Only the first ${count.toLocaleString("en")} ${what} were read: lists and sums here may lack others.`;
  if (![...place.children].some((p) => p.textContent === text)) place.append(el("p.hint", text));
}

/** Shows a message below the content and announces it to screen readers. */
export function say(text) {
  document.getElementById("status").textContent = visible(text);
}

export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} copied.`);
  } catch {
    // Without a secure context there is no clipboard: show the text, to be copied manually.
    const field = el("textarea", { value: text, readOnly: true, rows: 3, "aria-label": what });
    const box = el(
      "dialog",
      { onclose: () => box.remove() },
      el("p", `${what}:`),
      field,
      el("form", { method: "dialog" }, el("button", "Close")),
    );
    document.body.append(box);
    box.showModal();
    field.select();
  }
}
