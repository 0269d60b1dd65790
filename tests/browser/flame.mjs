// The flame graph shows the daemon's tree of stacks: boxes as wide as their time, zoom by path, links to the function.
import { address, check, get, id, open, point, ready, text, visit } from "./page.mjs";

const calc = id("calc");
const treeOf = (build) => get(`api/v1/builds/${build}/report?format=tree&names=short`);

/** Time of each node with what is below it. */
function totals(tree) {
  const sums = [...tree.self];
  for (let i = sums.length - 1; i >= 0; i--) if (tree.parent[i] >= 0) sums[tree.parent[i]] += sums[i];
  return sums;
}

async function boxes(page) {
  const tree = await treeOf(calc);
  const sums = totals(tree);
  await visit(page, `?build=${calc}&view=flame`);
  const shown = await page
    .locator("svg.flame .box")
    .evaluateAll((all) =>
      all.map((b) => [
        b.querySelector("title").textContent.split(", ")[0],
        Number(b.querySelector("rect").getAttribute("width")),
      ]),
    );
  const whole = shown[0][1];
  const names = tree.frame.map((f) => tree.frames[f].full_name ?? tree.frames[f].name);
  const right = names.every((name, i) => {
    const share = sums[i] / tree.total;
    return share < 0.002 || shown.some(([n, w]) => n === name && Math.abs(w / whole - share) < 0.002);
  });
  point(names.length > 3 && right, "flame: every node of the tree is a box as wide as its time", [shown, names, sums]);
  point(
    tree.synthetic === /Synthetic stacks/.test(await text(page, "#synthetic")),
    "flame: says how the stacks were made",
  );
}

/** The function below another one that has the most time. */
function heaviest(tree) {
  const sums = totals(tree);
  const below = tree.frame.map((_, i) => i).filter((i) => tree.parent[i] >= 0 && tree.frames[tree.frame[i]].address);
  return tree.frames[tree.frame[below.reduce((a, b) => (sums[b] > sums[a] ? b : a))]];
}

async function zoom(page) {
  const { name } = heaviest(await treeOf(calc));
  const box = page.locator("svg.flame .box", { has: page.locator(`title:text-matches("^${name},")`) }).first();
  const top = () => page.locator("svg.flame .box:not(.above) title").first().textContent();
  await visit(page, `?build=${calc}&view=flame`);
  await box.click();
  await page.waitForFunction(() => new URLSearchParams(location.search).has("zoom"));
  point((await top()).startsWith(`${name}, `), "flame: a click zooms", await top());
  const path = new URL(page.url()).searchParams.get("zoom");
  await visit(page, `?build=${calc}&view=flame&until=2099-01-01&zoom=${encodeURIComponent(path)}`);
  point((await top()).startsWith(`${name}, `), "flame: the address has the path to it", path);
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

/** Stacks that ticks found say so. */
async function measured(page) {
  const live = (await get("api/v1/processes")).rows;
  if (!live.length) return;
  const tree = await treeOf(live[0].build_id);
  if (tree.synthetic || !(tree.total > 0)) return;
  await visit(page, `?build=${live[0].build_id}&view=flame`);
  point(
    /Measured stacks/.test(await text(page)) && !/ynthetic/.test(await text(page)),
    "flame: measured stacks say so",
  );
}

export async function flame() {
  const page = await open({ viewport: { width: 1440, height: 900 } });
  for (const part of [boxes, zoom, measured]) await part(page);
  await page.context().close();
}
