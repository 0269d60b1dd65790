// Every view with real data.
import { builds, get, id, inEveryLook } from "./page.mjs";

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

export const everyView = () => inEveryLook(views);
