// The call graph: readable without zooming, boxes apart, hover, search, menu, what is near a
// function, cycles as groups.
import { address, builds, check, get, id, open, point, ready, visit } from "./page.mjs";

const shapes = id("shapes");
const calc = id("calc");
const NODE = "svg.graph .node";
const LEAST = 10.99; // pixels of a letter's height as fonts count it

const titles = (page, selector = NODE) => page.locator(`${selector} .title`).allTextContents();
const graphOf = (build, limit) => get(`api/v1/builds/${build}/report?format=graph&limit=${limit}&names=short`);

async function readable(page) {
  for (const [name, query] of [
    ["40 functions", `?build=${shapes}&view=graph`],
    ["an open cycle", `?build=${calc}&view=graph&zoom=1`],
  ]) {
    await visit(page, query);
    const letters = await page.locator("svg.graph text").evaluateAll((all) => {
      const scale = document.querySelector("svg.graph").getScreenCTM().a;
      return all.map((t) => parseFloat(getComputedStyle(t).fontSize) * scale);
    });
    point(
      letters.length > 10 && Math.min(...letters) >= LEAST,
      `${name}: texts of 11 pixels or more`,
      Math.min(...letters),
    );
    const over = await page.locator(`${NODE} > rect`).evaluateAll((all) => {
      const boxes = all.map((r) => r.getBoundingClientRect());
      const meets = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
      return boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => meets(a, b))).length;
    });
    point(over === 0, `${name}: no box covers another`, over);
    const cut = await page.locator(NODE).evaluateAll((all) => {
      const wide = (n) => Math.max(...[...n.querySelectorAll("text")].map((t) => t.getBBox().width));
      return all.filter((n) => wide(n) > n.querySelector("rect").getBBox().width).length;
    });
    point(cut === 0, `${name}: every text fits into its box`, cut);
  }
}

/** The function of calc that is in no cycle and has the most callers and callees. */
function busy(graph) {
  const free = graph.nodes.filter((n) => !n.cycle);
  const degree = (n) => graph.edges.filter((e) => e.source === n.id || e.target === n.id).length;
  return free.reduce((a, b) => (degree(b) > degree(a) ? b : a));
}

const around = (graph, node) =>
  new Set(graph.edges.filter((e) => e.source === node.id || e.target === node.id).flatMap((e) => [e.source, e.target]));

async function hover(page) {
  const graph = await graphOf(calc, 40);
  const node = busy(graph);
  await visit(page, `?build=${calc}&view=graph&zoom=1`);
  await page
    .locator(NODE, { has: page.locator(`text="${node.title}"`) })
    .first()
    .focus();
  const marked = await titles(page, "svg.graph .item.near .node");
  const wanted = graph.nodes.filter((n) => around(graph, node).has(n.id)).map((n) => n.title);
  point(wanted.length > 1 && wanted.every((t) => marked.includes(t)), "graph: the focus marks callers and callees", [
    wanted,
    marked,
  ]);
  point(marked.includes("main"), "graph: and the path to them from a root", marked);
}

async function focus(page) {
  const graph = await graphOf(calc, 1000);
  const node = busy(graph);
  await visit(page, `?build=${calc}&view=graph&zoom=1`);
  const all = (await titles(page)).length;
  await page
    .locator(NODE, { has: page.locator(`text="${node.title}"`) })
    .first()
    .focus();
  await page.keyboard.press("f");
  await address(page, "focus", node.address);
  await ready(page);
  const wanted = graph.nodes
    .filter((n) => around(graph, node).has(n.id))
    .map((n) => n.title)
    .sort();
  const shown = (await titles(page)).sort();
  point(shown.join() === wanted.join() && shown.length < all, `graph: f shows what is one call from ${node.title}`, [
    shown,
    wanted,
  ]);
  await page.locator("#depth").selectOption("3");
  await address(page, "depth", "3");
  await ready(page);
  const deeper = await titles(page);
  point(
    deeper.length > shown.length && wanted.every((t) => deeper.includes(t)),
    "graph: and what is three calls away",
    deeper,
  );
  await check(page, "graph around a function");
  await page.locator("main a", { hasText: "Whole graph" }).press("Enter");
  await address(page, "focus", "");
  await ready(page);
  point((await titles(page)).length === all, "graph: and all of it again");
  await visit(page, `?build=${calc.slice(0, 8)}&view=graph&focus=${node.address}`);
  point((await titles(page)).includes(node.title), "graph: a function is found in a build with a short id");
  await visit(page, `?build=${calc}&fn=${node.address}`);
  await page.locator(".pane a", { hasText: "In the call graph" }).press("Enter");
  await address(page, "focus", node.address);
  await ready(page);
  point((await titles(page)).includes(node.title), "graph: a function's callers and callees lead to it", page.url());
}

/** On a phone most boxes are outside the window of the picture: one that gets the focus by Tab comes into sight. */
async function tabbed() {
  const page = await open({ viewport: { width: 390, height: 844 } });
  await visit(page, `?build=${calc}&view=graph`);
  const cut = await page.evaluate((selector) => {
    const outer = document.querySelector("svg.graph").getBoundingClientRect();
    const boxes = [...document.querySelectorAll(selector)].map((e) => [e.textContent, e.getBoundingClientRect()]);
    const out = ([, b]) => b.left < outer.left || b.right > outer.right || b.top < outer.top || b.bottom > outer.bottom;
    return { boxes: boxes.length, out: boxes.filter(out).map(([name]) => name) };
  }, NODE);
  point(cut.boxes >= 4 && cut.out.length === 0, "graph: on a phone the boxes with the most time are whole", cut);
  await page.locator("main p a", { hasText: "more" }).click();
  await page.waitForFunction(
    ([selector, n]) => document.querySelectorAll(selector).length > n,
    [NODE, cut.boxes],
  );
  point(/nodes=40/.test(page.url()), "graph: and the others are one tap away", page.url());
  await visit(page, `?build=${shapes}&view=graph&nodes=40`);
  await page.locator("svg.graph").focus();
  const hidden = [];
  let seen = 0;
  for (let i = 0; i < 12; i++) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate((selector) => {
      const box = document.activeElement.closest(selector);
      if (!box) return null;
      const [inner, outer] = [box, box.closest("svg")].map((e) => e.getBoundingClientRect());
      const across = inner.left >= outer.left - 1 && inner.right <= outer.right + 1;
      const inside = across && inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
      return { inside, name: box.textContent };
    }, NODE);
    seen += at ? 1 : 0;
    if (at && !at.inside) hidden.push(at.name);
  }
  point(seen > 5 && hidden.length === 0, "graph: a box that gets the focus by keyboard comes into sight", [
    seen,
    hidden,
  ]);
  await page.context().close();
}

const byTitle = (page, title) => page.locator(NODE, { has: page.locator(`text="${title}"`) }).first();

/** Colour and letters say what takes the time itself; all lines have one unit. */
async function heat(page) {
  const graph = await graphOf(calc, 40);
  await visit(page, `?build=${calc}&view=graph&zoom=1`);
  const size = async (n) => {
    const box = byTitle(page, n.title);
    const share = (e) => Number.parseFloat(e.style.getPropertyValue("--share"));
    const letters = (e) => Number.parseFloat(getComputedStyle(e).fontSize);
    return [await box.locator("rect").evaluate(share), await box.locator(".title").evaluate(letters)];
  };
  const order = graph.nodes.filter((n) => !n.rest).sort((a, b) => b.self_seconds - a.self_seconds);
  const [most, least] = [await size(order[0]), await size(order.at(-1))];
  point(most[0] > least[0] && most[1] > least[1], "graph: what has most time itself is the hottest and largest", [
    most,
    least,
  ]);
  const labels = await page.locator("svg.graph .tag text").allTextContents();
  point(labels.length > 5 && labels.every((label) => / ×$/.test(label)), "graph: one unit at all lines", labels);
}

/** The first picture is seen as a whole, also where not all functions fit. */
async function fitted(page) {
  await visit(page, `?build=${shapes}&view=graph`);
  const out = await page.evaluate((selector) => {
    const outer = document.querySelector("svg.graph").getBoundingClientRect();
    const boxes = [...document.querySelectorAll(selector)].map((e) => e.getBoundingClientRect());
    return boxes.filter((b) => b.left < outer.left || b.right > outer.right || b.bottom > outer.bottom).length;
  }, NODE);
  point(out === 0, "graph: the first picture is whole", out);
}

/** A box's menu hides it, or what only it reaches too; pointing at a box names its callers and callees. */
async function menu(page) {
  const graph = await graphOf(calc, 40);
  const whole = `?build=${calc}&view=graph&zoom=1`;
  await visit(page, whole);
  const all = await titles(page);
  const ends = (from, to, n) => graph.edges.filter((e) => e[from] === n.id && e[to] !== n.id);
  const named = new Map(graph.nodes.map((n) => [n.id, n]));
  const callers = (id) => ends("target", "source", named.get(id)).length;
  const only = graph.edges.find((e) => callers(e.target) === 1 && callers(e.source) > 0);
  const [caller, callee] = [named.get(only.source).title, named.get(only.target).title];
  await byTitle(page, caller).hover();
  await page.waitForFunction((name) => document.querySelector(".detail").textContent.includes(`${name} (`), callee);
  const choose = async (text) => {
    await byTitle(page, caller).click({ button: "right" });
    await page.locator("[role=menuitem]", { hasText: text }).first().click();
    await page.waitForSelector("a.chip");
    await ready(page);
    return titles(page);
  };
  const hidden = await choose(/^Hide it$/);
  const right = hidden.length === all.length - 1 && !hidden.includes(caller) && hidden.includes(callee);
  point(right, "graph: the menu hides a box, and no other", [caller, callee, hidden]);
  await page.goBack();
  await ready(page);
  const ignored = await choose("only it reaches");
  point(
    !ignored.includes(caller) && !ignored.includes(callee),
    "graph: or what only it reaches, too",
    [caller, callee, ignored],
  );
  await check(page, "graph without a function", undefined, "main");
  await page.locator("a.chip").click();
  await address(page, "ignore", "");
  await ready(page);
  point((await titles(page)).length === all.length, "graph: and shows it again", await titles(page));
}

async function search(page) {
  await visit(page, `?build=${calc}&view=graph&zoom=1`);
  await page.keyboard.press("/");
  await page.keyboard.type("^parse_");
  const hits = await titles(page, "svg.graph .item.hit .node");
  point(hits.length > 1 && hits.every((t) => t.startsWith("parse_")), "graph: what is found is marked", hits);
  const marked = () => page.locator("svg.graph .item.hit.at .title").allTextContents();
  await page.keyboard.press("Enter");
  const first = await marked();
  await page.keyboard.press("Enter");
  const second = await marked();
  point(
    first.length > 0 && second.join() !== first.join(),
    "graph: Enter goes to one after the other",
    first,
  );
  await page.keyboard.press("Shift+Enter");
  point((await marked()).join() === first.join(), "graph: and with Shift back", [first, second, await marked()]);
}

async function groups(page) {
  const report = await get(`api/v1/builds/${calc}/report?limit=0`);
  const [cycle] = report.cycles;
  await visit(page, `?build=${calc}&view=graph&zoom=1`);
  const label = page.locator("svg.graph .label");
  const about = await label.getAttribute("aria-label");
  const inside = cycle.calls_inside.toLocaleString("en");
  point(about.includes(`${inside} among its members`), "graph: an open cycle has the report's numbers", about);
  const held = await page.evaluate(() => {
    const group = document.querySelector("svg.graph .group").getBoundingClientRect();
    const within = (b) =>
      b.left >= group.left && b.right <= group.right && b.top >= group.top && b.bottom <= group.bottom;
    const nodes = [...document.querySelectorAll("svg.graph .node")];
    const held = nodes.filter((n) => within(n.querySelector("rect").getBoundingClientRect()));
    return held.map((n) => n.querySelector(".title").textContent);
  });
  const members = cycle.members.map((m) => m.name);
  point(held.sort().join() === members.sort().join(), "graph: its members, and no others, are in its area", [
    held,
    members,
  ]);
  point((await page.locator("svg.graph .edge.inside").count()) > 1, "graph: and the calls among them are drawn");
  await label.focus();
  await page.keyboard.press("Enter");
  await address(page, "zoom", "");
  await ready(page);
  point((await page.locator(`${NODE}.cycle`).count()) === 1, "graph: Enter on its label closes it");
}

/** Edges have measured times and their intervals, or times by calls. */
async function measured(page) {
  if (!builds.some((b) => b.name.endsWith("/counted"))) return; // there is no collector
  await visit(page, `?build=${id("counted")}&view=graph`);
  const said = () => page.locator("svg.graph .edge title").allTextContents();
  const before = await said();
  point(
    before.some((t) => /95 %: .*stacks?$/.test(t)),
    "graph: edges have measured times with intervals",
    before,
  );
  point(/Times are measured/.test(await page.locator("main").textContent()), "graph: and say so");
  await page.locator("#times").selectOption("calls");
  await address(page, "time", "calls");
  await ready(page);
  const after = await said();
  point(!after.some((t) => /95 %/.test(t)) && after.join() !== before.join(), "graph: or times by calls", after);
  point(/divided among its callers/.test(await page.locator("main").textContent()), "graph: and say that they are");
}

export async function graph() {
  const page = await open({ viewport: { width: 1440, height: 900 } });
  for (const part of [readable, fitted, heat, hover, focus, menu, search, groups, measured]) await part(page);
  await page.context().close();
  await tabbed();
}
