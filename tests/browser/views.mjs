// Every view with real data, in light and dark, wide and on a phone: axe-core finds nothing, nothing scrolls sideways.
import { builds, check, get, id, open, visit } from "./page.mjs";

const calc = await get(`api/v1/builds/${id("calc")}/report?limit=0`);
const member = calc.functions.find((f) => f.cycle === 1);
const views = [
  ["builds", ""],
  ["functions", `?view=functions&fn=${encodeURIComponent(member.name)}&match=${encodeURIComponent('service="calc"')}`],
  ["processes", "?view=processes"],
  ["hosts", "?view=hosts"],
  ["table", `?build=${id("calc")}&open=load`],
  ["function in a cycle", `?build=${id("calc")}&fn=${member.address}&open=cycle,series`],
  ["graph", `?build=${id("calc")}&view=graph&open=arcs`],
  ["flame", `?build=${id("calc")}&view=flame`],
  ["flame, leaves first", `?build=${id("calc")}&view=flame&mode=leaves&q=parse`],
  ["flame, split", `?build=${id("calc")}&view=flame&split=version`],
  ["sandwich", `?build=${id("calc")}&view=flame&mode=sandwich&focus=${member.address}`],
  ["call tree", `?build=${id("calc")}&view=tree`],
  ["compare", `?build=${id("calc")}&view=compare&against=${id("shapes")}`],
  ["interface", "?view=api"],
  ...(builds.some((b) => b.name.endsWith("/counted"))
    ? ["report", "graph", "flame", "tree"].map((view) => [`measured ${view}`, `?build=${id("counted")}&view=${view}`])
    : []),
  ["refusal", `?build=${id("calc")}&since=yesterdayish`],
];
const kinds = [
  ["light", { width: 1440, height: 900 }],
  ["dark", { width: 1440, height: 900 }],
  ["light", { width: 390, height: 844 }],
  ["dark", { width: 390, height: 844 }],
];

export async function everyView() {
  for (const [theme, viewport] of kinds) {
    const page = await open({ colorScheme: theme, viewport });
    for (const [name, query] of views) {
      await visit(page, query);
      await check(page, `${name}, ${theme}, ${viewport.width} wide`);
    }
    await page.context().close();
  }
}
