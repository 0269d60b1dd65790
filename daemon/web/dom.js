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

/** An element. props: properties, "class", "on…" handlers, "data-…"/"aria-…" attributes. children: nodes, strings,
 *  arrays, null. */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  if ("autocomplete" in node) node.autocomplete = "off"; // the address is the state: a browser restores none beside it
  set(node, props);
  add(node, children);
  return node;
}

const SVG = "http://www.w3.org/2000/svg";
export function svg(tag, props = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(props)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "style")
      node.style.cssText = value; // by the object model: the policy forbids style attributes
    else if (value !== null && value !== undefined && value !== false)
      node.setAttribute(key, SPOKEN.has(key) ? visible(value) : value);
  }
  add(node, children);
  return node;
}

function set(node, props) {
  for (const [key, given] of Object.entries(props)) {
    if (given === null || given === undefined || given === false) continue;
    const value = SPOKEN.has(key) ? visible(given) : given;
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [k, v] of Object.entries(value)) node.style.setProperty(k, v);
    else if (key.includes("-") || key === "role" || key === "for" || key === "list" || key === "scope")
      node.setAttribute(key, value);
    else node[key] = value;
  }
}

/** One by one: a call takes only some ten thousand arguments. */
export function add(node, children) {
  for (const part of parts(children)) node.append(part);
}

export function replace(node, ...children) {
  const all = document.createDocumentFragment();
  add(all, children);
  node.replaceChildren(all);
}

/** Says that a list of the interface was not read to its end. */
export function sayCut(what, count) {
  const place = document.getElementById("cut");
  const text = `Only the first ${count.toLocaleString("en")} ${what} were read: lists and sums here may lack others.`;
  if (![...place.children].some((p) => p.textContent === text)) place.append(el("p", { class: "hint" }, text));
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
      el("p", {}, `${what}:`),
      field,
      el("form", { method: "dialog" }, el("button", {}, "Close")),
    );
    document.body.append(box);
    box.showModal();
    field.select();
  }
}
