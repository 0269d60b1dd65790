// A picture that is zoomed and moved by wheel, fingers and keys, by changing the viewBox of an SVG. Pictures as files.
import { button, el } from "./dom.js";
import { menu } from "./menu.js";

const MARGIN = 16;
const LEAST = 11 / 12; // of its size; texts of 12 pixels are not drawn smaller than 11
const LARGEST = 1.25; // a small picture is not blown up

/** The scale at which as much of it is in the window as can be read. */
const readable = ({ width, height }, size) => Math.max(Math.min(size.w / width, size.h / height, LARGEST), LEAST);

/** Can all of it be read at once? */
export const fits = ({ width, height }, size) =>
  Math.min(size.w / (width + 2 * MARGIN), size.h / (height + 2 * MARGIN)) >= LEAST;

/** How high a window of that width must be for a picture; at most its height. */
export function heightFor(places, size) {
  const [width, height] = [places.width + 2 * MARGIN, places.height + 2 * MARGIN];
  return Math.min(size.h, Math.ceil(height * readable({ width, height }, size)));
}

export class Camera {
  /** places: {width, height} of the picture; size: of the window, in pixels. at: "x,y,width" of the part that is shown,
   *  or ""; moved(at) is told when it changes. anchor: the point that is in sight when not all is. */
  constructor(picture, places, size, at, moved, anchor) {
    const [w, h] = [places.width + 2 * MARGIN, places.height + 2 * MARGIN];
    Object.assign(this, { picture, moved, width: w, height: h, size, anchor, pointers: new Map() });
    picture.setAttribute("tabindex", "0");
    const on = (name, act) => picture.addEventListener(name, act, { passive: false });
    on("wheel", (event) => this.wheel(event));
    on("pointerdown", (event) => this.down(event));
    on("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel", "pointerleave"])
      on(end, (event) => this.pointers.delete(event.pointerId));
    on("keydown", (event) => this.key(event));
    const [x, y, part] = at.split(",").map(Number);
    if (at && [x, y, part].every(Number.isFinite) && part > 0) {
      this.view = { x, y, w: part, h: (part * size.h) / size.w };
      this.draw();
    } else this.aim(readable(this, size), anchor);
  }

  /** Shows the part of that scale around a point, inside the picture where it is larger than the window. */
  aim(scale, { x, y }) {
    const [w, h] = [this.size.w / scale, this.size.h / scale];
    const inside = (middle, part, whole) =>
      part >= whole
        ? (whole - part) / 2 - MARGIN
        : Math.min(Math.max(middle - part / 2, -MARGIN), whole - part - MARGIN);
    this.view = { x: inside(x, w, this.width), y: h >= this.height ? -MARGIN : inside(y, h, this.height), w, h };
    this.draw();
  }

  /** Brings a box around that point into sight, so that it can be read: {x, y, width, height}. */
  reveal(box) {
    const { x, y, w, h } = this.view;
    const scale = this.size.w / w;
    const inside = (middle, size, low, part) => middle - size / 2 >= low && middle + size / 2 <= low + part;
    if (scale >= LEAST && inside(box.x, box.width, x, w) && inside(box.y, box.height, y, h)) return;
    this.aim(Math.max(scale, LEAST), box);
  }

  /** As it was in the beginning: all of it where that can be read. */
  reset() {
    this.aim(readable(this, this.size), this.anchor);
    this.moved("");
  }

  show() {
    this.draw();
    const { x, y, w } = this.view;
    this.moved([x, y, w].map((n) => n.toFixed(1)).join(","));
  }

  draw() {
    const { x, y, w, h } = this.view;
    this.picture.setAttribute("viewBox", `${x} ${y} ${w} ${h}`);
  }

  /** Zooms around a point of the picture. */
  zoom(factor, cx = this.view.x + this.view.w / 2, cy = this.view.y + this.view.h / 2) {
    const w = Math.min(this.width * 4, Math.max(this.width / 50, this.view.w * factor));
    const real = w / this.view.w;
    this.view = { x: cx - (cx - this.view.x) * real, y: cy - (cy - this.view.y) * real, w, h: this.view.h * real };
    this.show();
  }

  move(dx, dy) {
    this.view.x += dx * this.view.w;
    this.view.y += dy * this.view.h;
    this.show();
  }

  point(event) {
    const p = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.picture.getScreenCTM().inverse());
    return [p.x, p.y];
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== this.picture) return;
    event.preventDefault();
    this.zoom(event.deltaY > 0 ? 1.1 : 1 / 1.1, ...this.point(event));
  }

  down(event) {
    if (event.pointerType === "mouse" && event.button !== 0) return;
    this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
  }

  drag(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const box = this.picture.getBoundingClientRect();
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, p]) => p);
    if (others.length === 1) {
      const gap = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);
      const now = gap([event.clientX, event.clientY], others[0]);
      if (now > 0) this.zoom(gap(before, others[0]) / now);
    } else if (others.length === 0) {
      this.move((before[0] - event.clientX) / box.width, (before[1] - event.clientY) / box.height);
    }
    this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] };
    if (moves[event.key]) this.move(...moves[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(1 / 1.25);
    else if (event.key === "-") this.zoom(1.25);
    else if (event.key === "0" || event.key === "Escape") this.reset();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

const LOOK =
  "fill stroke stroke-width stroke-dasharray opacity font-size font-family font-weight text-anchor text-decoration";
const FINE = 2; // pixels of a file for one of the page
const MOST = 8192; // pixels of a side

/** A copy that has its colours in itself: {text, width, height}. area: "x y width height", else its viewBox. */
function alone(view, area = view.getAttribute("viewBox")) {
  const copy = view.cloneNode(true);
  const nodes = copy.querySelectorAll("*");
  view.querySelectorAll("*").forEach((node, i) => {
    const style = getComputedStyle(node);
    if (style.display === "none") nodes[i].setAttribute("display", "none");
    for (const name of LOOK.split(" ")) nodes[i].setAttribute(name, style.getPropertyValue(name));
    for (const name of ["style", "class", "tabindex"]) nodes[i].removeAttribute(name);
  });
  const [x, y, width, height] = area.split(" ").map(Number);
  copy.removeAttribute("style");
  copy.setAttribute("viewBox", area);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const ground = document.createElementNS(copy.namespaceURI, "rect");
  const fill = getComputedStyle(document.body).backgroundColor;
  for (const [name, value] of Object.entries({ x, y, width, height, fill })) ground.setAttribute(name, value);
  copy.prepend(ground);
  return { text: new XMLSerializer().serializeToString(copy), width, height };
}

async function pngOf({ text, width, height }) {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  await image.decode();
  const scale = Math.min(FINE, MOST / width, MOST / height);
  const canvas = el("canvas", { width: Math.round(width * scale), height: Math.round(height * scale) });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** A menu that saves a picture. name: of the file. pictureOf() gives [view, area]; area as of alone(). */
export function saving(name, pictureOf) {
  const save = async (kind) => {
    const picture = alone(...pictureOf());
    const svg = () => new Blob([picture.text], { type: "image/svg+xml" });
    const url = URL.createObjectURL(kind === "svg" ? svg() : await pngOf(picture));
    el("a", { href: url, download: `${name}.${kind}` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
  };
  const both = el("p.bar", ["svg", "png"].map((kind) => button(kind.toUpperCase(), () => save(kind))));
  return menu("save", "Save the picture as a file", "Save", both);
}
