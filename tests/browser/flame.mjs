// The flame graph shows the tree of stacks: boxes as wide as their time, from the root, from the leaves or around a
// function; search, zoom by path, wheel and drag, menu, files, tooltip, touch, links. The call tree has the same boxes
// as rows.
import { readFileSync } from "node:fs";

import { address, builds, check, get, id, open, point, ready, text, visit } from "./page.mjs";

const calc = id("calc");
const BOX = "svg.flame .box";
const treeOf = (build, more = "") => get(`api/v1/builds/${build}/report?format=tree&names=short${more}`);
const close = (a, b, most) => Math.abs(a - b) <= most;

/** Time of each node with what is below it. */
function totals(tree) {
  const sums = [...tree.self_seconds];
  for (let i = sums.length - 1; i >= 0; i--) if (tree.parent[i] >= 0) sums[tree.parent[i]] += sums[i];
  return sums;
}

const keyOf = (frame) => `${frame.address}@${frame.build_id}`;
const nameAt = (tree, i) => tree.frames[tree.frame[i]].full_name ?? tree.frames[tree.frame[i]].name;

/** Indexes of the nodes above one, nearest first. */
function above(tree, i) {
  const path = [];
  for (let at = tree.parent[i]; at >= 0; at = tree.parent[at]) path.push(at);
  return path;
}

/** The inclusive time of each function by its key: of each path only the outermost box counts. */
function inclusive(tree) {
  const sums = totals(tree);
  const times = new Map();
  tree.frame.forEach((f, i) => {
    if (above(tree, i).some((at) => tree.frame[at] === f)) return;
    const key = keyOf(tree.frames[f]);
    times.set(key, (times.get(key) ?? 0) + sums[i]);
  });
  return times;
}

/** Name, width and level of each box that is drawn. */
const shown = (page, selector = BOX) =>
  page
    .locator(selector)
    .evaluateAll((all) =>
      all.map((b) => [
        b.getAttribute("aria-label").split(", ")[0],
        Number(b.querySelector("rect").getAttribute("width")) + 0.5,
        Number(b.getAttribute("aria-level")),
      ]),
    );

async function boxes(page) {
  const tree = await treeOf(calc);
  const sums = totals(tree);
  await visit(page, `?build=${calc}&view=flame`);
  const drawn = await shown(page);
  const whole = drawn[0][1];
  const right = tree.frame.every((_, i) => {
    const width = (sums[i] / tree.total_seconds) * whole;
    return width < 2.1 || drawn.some(([name, w]) => nameAt(tree, i).startsWith(name) && close(w, width, 0.02));
  });
  const told = await page.locator(BOX).evaluateAll((all) =>
    all
      .filter((b) => b.querySelector(".part"))
      .map((b) => [b.querySelector(".part").textContent, b.getAttribute("aria-label")]),
  );
  const percent = (label) => Number.parseFloat(/\(([\d.]+) %\)/.exec(label)?.[1]);
  const near = ([part, label]) => Math.abs(Number.parseFloat(part) - percent(label)) < 0.51;
  const same = told.length > 1 && told.every(near);
  point(same, "flame: the share behind a name is that of the box", told);
  point(tree.nodes > 3 && right, "flame: every node of the tree is a box as wide as its time", [drawn, sums]);
  const chip = await text(page, "#synthetic");
  point(tree.synthetic === /By calls: synthetic stacks/.test(chip), "flame: says how the stacks were made", chip);
  const legend = await page.locator(".legend").allTextContents();
  point(legend.length === 0, "flame: one program has one colour, and a cycle is not without a symbol", legend);
  const own = tree.self_seconds.reduce((sum, self) => sum + self, 0);
  const rows = await page.locator("[role=grid] tbody tr[data-at]").count();
  point(rows > 3 && close(own, tree.total_seconds, 1e-6), "flame: a table of the functions stands beside it", rows);
}

async function inverted(page) {
  const tree = await treeOf(calc);
  const own = new Map();
  tree.frame.forEach((_, i) => own.set(nameAt(tree, i), (own.get(nameAt(tree, i)) ?? 0) + tree.self_seconds[i]));
  await visit(page, `?build=${calc}&view=flame&mode=leaves`);
  const drawn = await shown(page);
  const first = drawn.filter(([, , level]) => level === 2);
  const right = first.every(([name, w]) =>
    [...own].some(([full, self]) => full.startsWith(name) && close(w, (self / tree.total_seconds) * drawn[0][1], 0.02)),
  );
  const wide = [...own.values()].filter((self) => (self / tree.total_seconds) * drawn[0][1] >= 2.1).length;
  point(
    first.length >= wide && wide > 0 && right,
    "leaves first: below the whole stand the functions with their self times",
    first,
  );
  point(
    drawn.some(([name, , level]) => level > 2 && name === "main"),
    "leaves first: below them their callers",
    drawn,
  );
}

async function sandwich(page) {
  const tree = await treeOf(calc);
  const times = inclusive(tree);
  const frame = tree.frames.find((f) => f.name === "main");
  const middle =
    tree.frames[tree.frame[tree.frame.findIndex((f, i) => above(tree, i).length > 1 && tree.frames[f].address)]];
  const focus = middle.build_id === calc ? middle.address : `${middle.address}@${middle.build_id}`;
  await visit(page, `?build=${calc}&view=flame`);
  await page.getByRole("link", { name: middle.name, exact: true }).first().click();
  await page.waitForFunction(() => new URLSearchParams(location.search).get("mode") === "sandwich");
  await ready(page);
  const named = new URL(page.url()).searchParams.get("focus");
  point(named.startsWith(focus.split("@")[0]), "flame: a name in the table leads to its sandwich", [named, focus]);
  const callers = await shown(page, ".flames:nth-of-type(1) svg .box");
  const callees = await shown(page, ".flames:nth-of-type(2) svg .box");
  const ends = [callers[0][0], callees[0][0]];
  point(
    ends.every((name) => name.startsWith(middle.name)),
    "sandwich: the function joins both halves",
    ends,
  );
  point(frame && callers.some(([name]) => name === "main"), "sandwich: its callers stand above it", callers);
  const label = await page.locator(BOX).first().getAttribute("aria-label");
  const share = (100 * times.get(keyOf(middle))) / tree.total_seconds;
  const said = Number(/\(([\d.]+) %\)/.exec(label)[1]);
  point(close(said, share, 0.06 * share + 0.01), "sandwich: its time is that of all stacks with it, each once", [
    label,
    share,
  ]);
  await check(page, "sandwich of a function");
}

async function search(page) {
  const tree = await treeOf(calc);
  const sums = totals(tree);
  const hit = (i) => /^parse_/.test(nameAt(tree, i));
  const outer = tree.frame.map((_, i) => i).filter((i) => hit(i) && !above(tree, i).some(hit));
  const share = (100 * outer.reduce((sum, i) => sum + sums[i], 0)) / tree.total_seconds;
  await visit(page, `?build=${calc}&view=flame`);
  await page.keyboard.press("/");
  await page.keyboard.type("^parse_");
  const sum = await text(page, ".bar output");
  const boxes = tree.frame.filter((_, i) => hit(i)).length;
  const right = sum.startsWith(`${boxes} box`) && close(Number(/([\d.]+) %/.exec(sum)[1]), share, 0.06 * share + 0.01);
  point(outer.length > 0 && right, "flame: a search says how much time its matches have, nothing twice", [sum, share]);
  const marked = await page.locator(`${BOX}.hit`).count();
  point(marked > 0 && (await page.locator(`${BOX}.miss`).count()) > 0, "flame: and marks them", marked);
  const rows = await page.locator("[role=grid] tbody tr[data-at] td:first-child").allTextContents();
  point(rows.length > 0 && rows.every((name) => name.startsWith("parse_")), "flame: and in the table", rows);
}

/** The function below another one that has the most time. */
function heaviest(tree) {
  const sums = totals(tree);
  const below = tree.frame.map((_, i) => i).filter((i) => tree.parent[i] >= 0 && tree.frames[tree.frame[i]].address);
  return tree.frames[tree.frame[below.reduce((a, b) => (sums[b] > sums[a] ? b : a))]];
}

/** The names of the functions in the table, sorted. */
const listed = async (page) =>
  (await page.locator("[role=grid] tbody tr[data-at] td:first-child").allTextContents()).sort().join();

/** The table beside the flame has the functions of the box that fills the width, with their times below it. */
async function follows(page, tree, name) {
  const at = tree.frame.map((_, i) => i).filter((i) => nameAt(tree, i) === name);
  const below = (root) => tree.frame.map((_, i) => i).filter((i) => i === root || above(tree, i).includes(root));
  const sets = at.map((root) => [...new Set(below(root).map((i) => nameAt(tree, i)))].sort().join());
  const zoomed = await listed(page);
  point(sets.includes(zoomed), "flame: the table beside it follows the zoom", [zoomed, sets]);
  const title = await page.getAttribute("table[role=grid]", "aria-label");
  point(title.endsWith(name), "flame: and says of what it is", title);
}

async function zoom(page) {
  const tree = await treeOf(calc);
  const { name } = heaviest(tree);
  const box = page.locator(`${BOX}[aria-label^="${name},"]`).first();
  const top = () => page.locator(`${BOX}:not(.above)`).first().getAttribute("aria-label");
  await visit(page, `?build=${calc}&view=flame`);
  await box.hover();
  const tip = await text(page, ".tip");
  point(tip.startsWith(name) && /%/.test(tip), "flame: the tooltip has name and numbers", tip);
  await box.click();
  await page.waitForFunction(() => new URLSearchParams(location.search).has("zoom"));
  point((await top()).startsWith(`${name}, `), "flame: a click zooms", await top());
  await follows(page, tree, name);
  await page.goBack();
  await address(page, "zoom", "");
  await ready(page);
  const back = new URL(page.url()).searchParams;
  point(
    back.get("view") === "flame" && back.get("build") === calc && !(await page.locator(`${BOX}.above`).count()),
    "flame: Back shows what was there before the zoom",
    page.url(),
  );
  await page.goForward();
  await ready(page);
  point((await top()).startsWith(`${name}, `), "flame: and Forward the zoom", await top());
  const path = new URL(page.url()).searchParams.get("zoom");
  await visit(page, `?build=${calc}&view=flame&until=2099-01-01&zoom=${encodeURIComponent(path)}`);
  point((await top()).startsWith(`${name}, `), "flame: the address has the path to it", path);
  await page.locator("button", { hasText: "Reset zoom" }).click();
  await address(page, "zoom", "");
  const all = [...new Set(tree.frame.map((_, i) => nameAt(tree, i)))].sort().join();
  point((await listed(page)) === all, "flame: without a zoom the table has all functions", [await listed(page), all]);
  await box.focus();
  await check(page, "flame with links");
  await page.locator(".detail a", { hasText: "Callers and callees" }).press("Enter");
  await page.waitForSelector(".pane dl");
  await ready(page);
  point((await text(page, ".pane h2")) === name, "flame: a box leads to its function", page.url());
  await visit(page, `?build=${calc}&view=flame`);
  await box.focus();
  await page.locator(".detail a", { hasText: "In the call graph" }).press("Enter");
  await address(page, "view", "graph");
  await page.waitForSelector("svg.graph .node");
  await ready(page);
  const titles = await page.locator("svg.graph .node > title").allTextContents();
  point(titles.length > 1, "flame: and into the call graph", titles);
}

/** What is in sight of the whole: the share of its width. */
const inSight = (page) => page.evaluate(() => {
  const [from, to] = (new URLSearchParams(location.search).get("at") ?? "").split(",").map(Number);
  return to - from;
});

/** The wheel zooms around the pointer, dragging moves, and Back returns from each. */
async function wheel(page) {
  await visit(page, `?build=${calc}&view=flame&layout=flame`);
  const whole = page.url();
  const { x, y, width } = await page.locator("svg.flame").first().boundingBox();
  await page.mouse.move(x + width / 4, y + 10);
  await page.keyboard.down("Control");
  for (let i = 0; i < 3; i++) await page.mouse.wheel(0, -100);
  await page.keyboard.up("Control");
  await page.waitForFunction(() => new URLSearchParams(location.search).has("at"));
  const [part, map] = [await inSight(page), await page.locator("svg.map .sight").count()];
  const right = part > 0.1 && part < 0.9 && map === 1;
  point(right, "flame: Ctrl and the wheel zoom; a map shows what is in sight", [part, map]);
  const zoomed = page.url();
  await page.mouse.down();
  await page.mouse.move(x + width / 4 - 60, y + 10, { steps: 4 });
  await page.mouse.up();
  await page.waitForFunction((before) => location.href !== before, zoomed);
  const moved = await inSight(page);
  const still = close(moved, part, 1e-5) && !/[?&]zoom=/.test(page.url());
  point(still, "flame: dragging moves, and zooms no box", page.url());
  for (const url of [zoomed, whole]) {
    await page.goBack();
    await page.waitForFunction((wanted) => location.href === wanted, url);
    await ready(page);
  }
  point((await page.locator("svg.map:not([hidden])").count()) === 0, "flame: Back returns from each");
}

/** What a box's menu leaves out is out of the numbers. */
async function menu(page) {
  const tree = await treeOf(calc);
  const { name } = heaviest(tree);
  const has = tree.frame.map((_, i) => [i, ...above(tree, i)].some((at) => nameAt(tree, at) === name));
  const part = tree.self_seconds.reduce((sum, self, i) => sum + (has[i] ? self : 0), 0) / tree.total_seconds;
  const box = page.locator(`${BOX}[aria-label^="${name},"]`).first();
  const shares = async (title) => {
    await visit(page, `?build=${calc}&view=flame`);
    await box.click({ button: "right" });
    const items = await page.locator("[role=menu] [role=menuitem]").allTextContents();
    point(items.includes("Copy name") && items.includes("Code"), `flame: a right click opens a menu: ${title}`, items);
    await page.locator("[role=menuitem]", { hasText: title }).click();
    await page.waitForSelector("a.chip");
    await ready(page);
    const root = await page.locator(BOX).first().getAttribute("aria-label");
    return [Number(/\(([\d.]+) %\)/.exec(root)?.[1] ?? 0) / 100, await box.count()];
  };
  const only = await shares("Only stacks");
  point(close(only[0], part, 0.01) && only[1] > 0, "flame: only stacks with a function have their time", [only, part]);
  await check(page, "flame of some stacks", undefined, "main");
  const without = await shares("Without stacks");
  point(close(without[0], 1 - part, 0.01) && !without[1], "flame: without them is the rest", [without, part]);
  const hidden = await shares("Hide");
  point(close(hidden[0], 1, 1e-6) && !hidden[1], "flame: a hidden function leaves its time to its caller", hidden);
  await page.locator("a.chip").click();
  await address(page, "hide", "");
  await ready(page);
  point((await box.count()) > 0, "flame: and comes back");
  await box.focus();
  await page.keyboard.press("Shift+F10");
  await page.locator("[role=menuitem]").first().waitFor();
  await page.keyboard.press("ArrowDown");
  const at = await page.evaluate(() => document.activeElement.textContent);
  await page.keyboard.press("Escape");
  const back = await page.evaluate(() => document.activeElement.matches(".box"));
  point(at === "Zoom to it" && back, "flame: the keyboard opens the menu, moves in it and leaves it", [at, back]);
}

/** Enter goes from match to match, whose letters stand out; the picture becomes a file; table and picture by choice. */
async function found(page) {
  await visit(page, `?build=${calc}&view=flame`);
  await page.keyboard.press("/");
  await page.keyboard.type("parse_");
  const letters = await page.locator("svg.flame .letters").allTextContents();
  point(letters.length > 1 && letters.every((part) => part === "parse_"), "flame: the letters that match", letters);
  const places = [];
  for (const key of ["Enter", "Enter", "Shift+Enter"]) {
    await page.keyboard.press(key);
    places.push(/; (\d+) of \d+$/.exec(await text(page, ".bar output"))?.[1], await page.locator(`${BOX}.at`).count());
  }
  point(places.join() === "1,1,2,1,1,1", "flame: Enter goes to the next match, with Shift to the one before", places);
  for (const kind of ["SVG", "PNG"]) {
    await page.locator("#save").click();
    const wait = page.waitForEvent("download");
    await page.getByRole("button", { name: kind, exact: true }).click();
    const bytes = readFileSync(await (await wait).path());
    const whole = kind === "PNG" ? bytes.subarray(1, 4).toString() === "PNG" : /<text[^>]*>main/.test(String(bytes));
    point(whole && bytes.length > 500, `flame: the picture as ${kind}`, bytes.length);
    await page.keyboard.press("Escape");
  }
  const shows = async () => [await page.locator(BOX).count(), await page.locator("[role=grid]").count()].map(Boolean);
  const all = [];
  for (const layout of ["Flame", "Table", "Both"]) {
    await page.locator("[aria-label=Layout] a", { hasText: layout }).click();
    await ready(page);
    all.push(...(await shows()));
  }
  point(all.join() === "true,false,false,true,true,true", "flame: the picture, the table, or both", all);
}

/** A tree for each value of a label. */
async function split(page) {
  await visit(page, `?build=${calc}&view=flame`);
  await page.locator("#split").selectOption("version");
  await address(page, "split", "version");
  await ready(page);
  const parts = (await shown(page)).filter(([name]) => name.startsWith("version="));
  const whole = (await shown(page))[0][1];
  const right = [];
  const all = await treeOf(calc);
  for (const [name, width] of parts) {
    const part = await treeOf(calc, `&match=${encodeURIComponent(`version="${name.slice(8)}"`)}`);
    right.push(close(width, (part.total_seconds / all.total_seconds) * whole, 1));
  }
  point(right.length === 2 && right.every(Boolean), "flame: split by a label, each value has its time", parts);
}

/** Stacks that ticks found say so, and with what error; times by calls are a choice. */
async function measured(page) {
  if (!builds.some((b) => b.name.endsWith("/callers"))) return; // there is no collector
  await visit(page, `?build=${id("callers")}&view=flame`);
  point(
    /Measured stacks/.test(await text(page)) && !/ynthetic/.test(await text(page)),
    "flame: measured stacks say so",
  );
  const label = await page.locator(BOX).nth(1).getAttribute("aria-label");
  point(/\d stacks, 95 %: [\d.]+–[\d.]+ m?s/.test(label), "flame: a box has its stacks and its interval", label);
  await page.locator("#times").selectOption("calls");
  await address(page, "time", "calls");
  await ready(page);
  point(/By calls: synthetic stacks/.test(await text(page)), "flame: times by calls are a choice, and said");
}

/** Code of the kernel has a colour of its own, and says so. */
async function kernel(page) {
  const build = builds.find((b) => b.name === "[kernel]").build_id;
  await visit(page, `?build=${build}&view=flame`);
  const box = page.locator(`${BOX}.kernel`).first();
  const label = await box.getAttribute("aria-label");
  point(/code of the kernel/.test(label), "flame: a box of the kernel says so", label);
  const colours = await page
    .locator(`${BOX} > rect`)
    .evaluateAll((all) => all.map((r) => [r.parentNode.classList.contains("kernel"), getComputedStyle(r).fill]));
  const of = (kind) => new Set(colours.filter(([k]) => k === kind).map(([, fill]) => fill));
  point(
    of(true).size === 1 && ![...of(false)].some((fill) => of(true).has(fill)),
    "flame: in a colour of its own",
    colours,
  );
}

async function touch() {
  const page = await open({ viewport: { width: 390, height: 844 }, hasTouch: true });
  await visit(page, `?build=${calc}&view=flame`);
  const box = page.locator(BOX).nth(1);
  const name = (await box.getAttribute("aria-label")).split(", ")[0];
  await box.tap();
  point((await text(page, ".detail")).startsWith(name), "touch: a tap shows the numbers", await text(page, ".detail"));
  point((await page.locator(`${BOX}.above`).count()) === 0, "touch: and does not zoom yet");
  await box.tap();
  point((await page.locator(`${BOX}.above`).count()) > 0, "touch: the next tap on the box zooms");
  const small = await page
    .locator(BOX)
    .evaluateAll((all) => all.filter((b) => b.getBoundingClientRect().height < 22).length);
  point(small === 0, "touch: boxes are as high as a finger needs", small);
  await page.context().close();
}

const TREE = "[role=treegrid]";
const names = (page) => page.locator(`${TREE} tr[data-at] .named > :last-child`).allTextContents();

async function callTree(page) {
  const tree = await treeOf(calc);
  const roots = tree.parent.filter((p) => p < 0).length;
  await visit(page, `?build=${calc}&view=tree`);
  await page.locator("button", { hasText: "Close all" }).click();
  point((await names(page)).length === roots, "call tree: closed, it has the roots", await names(page));
  await page.locator(TREE).focus();
  for (const key of ["Home", "ArrowRight", "ArrowRight"]) await page.keyboard.press(key);
  const active = page.locator(`${TREE} tr.active`);
  point((await active.getAttribute("aria-level")) === "2", "call tree: → opens a row and goes into it");
  await page.waitForFunction(() => (new URLSearchParams(location.search).get("zoom") ?? "").includes("~"));
  const path = page.url();
  for (const key of ["ArrowLeft", "ArrowLeft"]) await page.keyboard.press(key);
  const state = [await active.getAttribute("aria-level"), await active.getAttribute("aria-expanded")];
  point(state.join() === "1,false", "call tree: ← goes out of it and closes it", state);
  await page.keyboard.press("*");
  const count = Number(await page.locator(TREE).getAttribute("aria-rowcount")) - 1;
  point(count > roots && count <= tree.nodes, "call tree: * opens all below a row", [count, tree.nodes]);
  await page.locator("button", { hasText: "Open all" }).click();
  point((await page.locator(TREE).getAttribute("aria-rowcount")) === String(tree.nodes + 1), "call tree: all rows");
  await page.goto(path);
  await ready(page);
  point((await active.getAttribute("aria-level")) === "2", "call tree: a reload shows the same row");
  await check(page, "call tree");
  await page.keyboard.press("/");
  await page.keyboard.type("parse_");
  await page.keyboard.press("Enter");
  point(/parse_/.test(await active.textContent()), "call tree: Enter goes to a match", await active.textContent());
  const rows = [await active.getAttribute("aria-rowindex")];
  for (const key of ["Enter", "Enter", "Shift+Enter", "Shift+Enter"]) {
    await page.keyboard.press(key);
    rows.push(await active.getAttribute("aria-rowindex"));
  }
  const back = rows[4] === rows[0] && rows[3] === rows[1] && new Set(rows).size === 3;
  point(back, "call tree: and to the next, with Shift to the one before", rows);
  await page.locator(TREE).focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector(".pane dl");
  await ready(page);
  point(/parse_/.test(await text(page, ".pane h2")), "call tree: Enter shows the function");
  await visit(page, `?build=${calc}&view=tree&mode=leaves`);
  const first = (await names(page))[0];
  const own = new Map();
  tree.frame.forEach((_, i) => own.set(nameAt(tree, i), (own.get(nameAt(tree, i)) ?? 0) + tree.self_seconds[i]));
  const most = [...own].reduce((a, b) => (b[1] > a[1] ? b : a))[0];
  point(first === most, "call tree: leaves first begins with the most self time", [first, most]);
}

export async function flame() {
  const page = await open({ viewport: { width: 1440, height: 900 } });
  const stacks = [boxes, inverted, sandwich, search, zoom, wheel, menu, found, split, measured, kernel];
  for (const part of [...stacks, callTree]) await part(page);
  await page.context().close();
  await touch();
}
