// A picture that is zoomed and moved by wheel, fingers and keys, by changing the viewBox of an SVG.
const MARGIN = 20;
const LEAST = [900, 420]; // a small picture isn't blown up

export class Camera {
  /** at: "x,y,width" of the part that is shown, or ""; moved(at) is told when it changes. first: the x where narrow screens begin. */
  constructor(picture, width, height, at, moved, first) {
    const [w, h] = [Math.max(LEAST[0], width + 2 * MARGIN), Math.max(LEAST[1], height + 2 * MARGIN)];
    Object.assign(this, { picture, moved, width: w, height: h, x: (width - w) / 2, y: -MARGIN, pointers: new Map() });
    picture.setAttribute("tabindex", "0");
    picture.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    picture.addEventListener("pointerdown", (event) => this.down(event));
    picture.addEventListener("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel", "pointerleave"])
      picture.addEventListener(end, (event) => this.pointers.delete(event.pointerId));
    picture.addEventListener("keydown", (event) => this.key(event));
    this.view = this.whole();
    // A whole graph on a phone could not be read: it begins at its root, at full size.
    if (innerWidth < 700 && w > innerWidth)
      this.view = { x: first - innerWidth / 2, y: this.y, w: innerWidth, h: (innerWidth * h) / w };
    const [px, py, pw] = at.split(",").map(Number);
    if (at && [px, py, pw].every(Number.isFinite) && pw > 0) this.view = { x: px, y: py, w: pw, h: (pw * h) / w };
    this.draw();
  }

  whole() {
    return { x: this.x, y: this.y, w: this.width, h: this.height };
  }

  reset() {
    this.view = this.whole();
    this.draw();
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
