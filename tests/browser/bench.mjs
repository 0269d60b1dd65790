// What a reader waits for, in a headless Chromium: first paint and interactions. node bench.mjs MODULES BASE-URL ROUNDS
// Prints one line of JSON: milliseconds, medians. Paint is counted to the frame that shows the result.
import { createRequire } from "node:module";
import { act, median, painted, shown } from "./timing.mjs";

const [modules, base, rounds] = process.argv.slice(2);
const { chromium } = createRequire(`${modules}/`)("playwright-core");
const { rows } = await (await fetch(new URL("api/v1/builds", base))).json();
const build = rows.find((r) => r.name.includes("graph")).build_id;
const tree = rows.find((r) => r.name.includes("stacks"))?.build_id;
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
const times = {};
const put = (what, ms) => (times[what] ??= []).push(ms);

/** A tree of 20,000 nodes that were measured. */
async function stacks(page) {
  if (!tree) return;
  const type = (page, value) =>
    act(
      page,
      (_, letters) => {
        const field = document.getElementById("filter");
        field.value = letters;
        field.dispatchEvent(new Event("input"));
      },
      value,
    );
  const press = (key) =>
    act(
      page,
      (_, name) =>
        document
          .querySelector("[role=treegrid]")
          .dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true })),
      key,
    );
  const click = (at) =>
    act(
      page,
      (_, place) =>
        document.querySelectorAll("svg.flame .box")[place].dispatchEvent(new MouseEvent("click", { bubbles: true })),
      at,
    );
  await page.goto(`${base}?build=${tree}&view=flame`, { waitUntil: "commit" });
  put("content of the flame, 20,000 nodes", await shown(page, "svg.flame .box"));
  await page.waitForLoadState("networkidle");
  put("zoom the flame, 20,000 nodes", await click(2));
  put("and back", await click(0));
  put("search in the flame, 20,000 nodes", await type(page, "f0001"));
  await page.goto(`${base}?build=${tree}&view=tree`, { waitUntil: "commit" });
  put("content of the call tree, 20,000 nodes", await shown(page, "[role=treegrid] tr[data-at]"));
  await page.waitForLoadState("networkidle");
  put("open all 20,000 nodes", await act(page, () => [...document.querySelectorAll("main button")].at(-2).click()));
  put("to the end of the call tree", await press("End"));
  put("a key in the call tree", await press("ArrowUp"));
  put("close a row of the call tree", await press("ArrowLeft"));
  put("search in the call tree", await type(page, "f0001"));
}

/** What a view takes until it is shown, and the CPU time of the page's main thread: what else runs on the machine
 *  changes that less. */
async function view(context, name, query, selector) {
  const page = await context.newPage();
  const cdp = await context.newCDPSession(page);
  await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
  await page.goto(base + query, { waitUntil: "commit" });
  put(`content of ${name}`, await shown(page, selector));
  const { metrics } = await cdp.send("Performance.getMetrics");
  put(`CPU time of the main thread for ${name}`, 1000 * metrics.find((m) => m.name === "TaskDuration").value);
  await page.close();
}

for (let n = 0; n < Number(rounds); n++) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, bypassCSP: true });
  const page = await context.newPage();
  await page.goto(`${base}?build=${build}`, { waitUntil: "commit" });
  put("content of the table, nothing cached", await shown(page, "tbody tr[data-at]"));
  put("first paint, nothing cached", await painted(page));
  await page.waitForLoadState("networkidle");
  await page.reload({ waitUntil: "commit" });
  put("content of the table, again", await shown(page, "tbody tr[data-at]"));
  put("first paint, again", await painted(page));
  await page.waitForLoadState("networkidle");
  put("sort by name", await act(page, () => document.querySelector("thead th:nth-child(1) button").click()));
  put(
    "sort by calls",
    await act(page, () =>
      [...document.querySelectorAll("thead button")].find((b) => /Calls/.test(b.textContent)).click(),
    ),
  );
  put(
    "filter, one letter more",
    await act(page, () => {
      const field = document.getElementById("filter");
      field.value = "f0001";
      field.dispatchEvent(new Event("input"));
    }),
  );
  put(
    "filter away",
    await act(page, () => {
      const field = document.getElementById("filter");
      field.value = "";
      field.dispatchEvent(new Event("input"));
    }),
  );
  put(
    "a key in the table",
    await act(page, () =>
      document
        .querySelector("[role=grid]")
        .dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true })),
    ),
  );
  put(
    "to the end of the table",
    await act(page, () =>
      document.querySelector("[role=grid]").dispatchEvent(new KeyboardEvent("keydown", { key: "End", bubbles: true })),
    ),
  );
  put(
    "worst of 100 frames of scrolling",
    await page.evaluate(async () => {
      const box = document.querySelector(".scroll");
      let worst = 0;
      let last = performance.now();
      for (let i = 0; i < 100; i++) {
        box.scrollTop = (box.scrollHeight * ((i * 37) % 100)) / 100;
        await new Promise((resolve) => requestAnimationFrame(resolve));
        worst = Math.max(worst, performance.now() - last);
        last = performance.now();
      }
      return worst;
    }),
  );
  put(
    "a function is opened",
    await act(page, (painted) => {
      document
        .querySelector("[role=grid]")
        .dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
      return new Promise((resolve) => {
        const look = () => (document.querySelector(".pane dl") ? resolve() : requestAnimationFrame(look));
        look();
      });
    }),
  );
  await page.waitForSelector(".butterfly");
  await page.evaluate(() =>
    document
      .querySelector("[role=grid]")
      .dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowUp", bubbles: true })),
  );
  put(
    "content of its callers and callees",
    await act(page, () => {
      const before = document.querySelector(".butterfly");
      document
        .querySelector("[role=grid]")
        .dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
      return new Promise((resolve) => {
        const look = () =>
          ![null, before].includes(document.querySelector(".butterfly")) ? resolve() : requestAnimationFrame(look);
        look();
      });
    }),
  );
  await page.waitForLoadState("networkidle");
  await page.goto(`${base}?build=${build}&view=graph`, { waitUntil: "commit" });
  put("content of the graph, 40 functions", await shown(page, "svg.graph .node"));
  await page.waitForLoadState("networkidle");
  put(
    "zoom the graph",
    await act(page, () =>
      document.querySelector("svg.graph").dispatchEvent(new KeyboardEvent("keydown", { key: "+", bubbles: true })),
    ),
  );
  await page.goto(`${base}?build=${build}&view=flame`, { waitUntil: "commit" });
  put("content of the flame", await shown(page, "svg.flame .box"));
  await page.waitForLoadState("networkidle");
  await stacks(page);
  await view(context, "the table, cached", `?build=${build}`, "tbody tr[data-at]");
  await view(context, "the functions of all builds", "?view=functions", "tbody tr[data-at]");
  await view(context, "the cycles", `?build=${build}&view=cycles`, ".one-cycle");
  await context.close();
}
await browser.close();
console.log(JSON.stringify(Object.fromEntries(Object.entries(times).map(([what, list]) => [what, median(list)]))));
