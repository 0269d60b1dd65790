// Two sides compared: what the interface says stands in the table, the flame graph and the graph; three clicks from the
// list.
import { address, base, builds, get, inEveryLook, open, point, ready, text, visit } from "./page.mjs";

const GRID = "[role=grid][aria-label=Differences]";
const ROW = `${GRID} tbody tr[data-at]`;
const shops = builds
  .filter((b) => b.name === "/srv/shop")
  .sort((a, b) => Date.parse(a.last_seen) - Date.parse(b.last_seen))
  .map((b) => b.build_id);
const [old, young] = shops;
const both = `?build=${old}&view=compare&against=${young}`;
const diff = await get(`api/v1/diff?a=${old}&b=${young}&limit=0`);
const rowsOf = (metric) => diff.metrics.find((t) => t.metric === metric).rows;

/** Rows that changed, or perhaps: the others are folded. */
const changed = (metric) => rowsOf(metric).filter((r) => !/not-significant|constant$|too-few/.test(r.verdict));

/** The texts of the row of a function, by the titles of the columns. */
async function cells(page, name) {
  const titles = await page.locator(`${GRID} thead th`).allTextContents();
  const row = page.locator(ROW, { has: page.locator(`td:first-child a:text-is("${name}")`) });
  const texts = await row.locator("td").allTextContents();
  return Object.fromEntries(titles.map((t, i) => [t.replace(/ [↑↓]$/, ""), texts[i]]));
}

/** What each process needs in all, and what is new, stand first. */
async function leads(page) {
  await visit(page, both);
  const answer = await text(page, ".answer strong");
  point(
    answer === diff.sentence &&
      /^1\.3 uses [\d.]+ (×|%) .* for each process: 1 new function, fresh, takes /.test(answer),
    "compare: the daemon's sentence is the first answer",
    [answer, diff.sentence],
  );
  const names = await page.locator(`${ROW} td:first-child`).allTextContents();
  const wanted = changed("self").map((r) => r.function);
  point(names.join() === wanted.join() && names[0] === "fresh", "compare: and the first row", [names, wanted]);
  point(
    (await cells(page, "fresh")).Verdict === "+ new",
    "compare: a function that is new",
    await cells(page, "fresh"),
  );
  const [time] = rowsOf("time-per-process");
  const [calls] = rowsOf("all-calls-per-process");
  const said = await text(page, ".whole");
  const percent = (row) => `+${Math.round(100 * row.change)} %`;
  point(
    /^CPU time per process /.test(said) && said.includes(percent(time)) && said.includes(percent(calls)),
    "compare: what a process needs in all",
    [said, time, calls],
  );
}

/** The words agree with the numbers, whatever a comparison finds. */
async function wording(page) {
  const row = (more) => ({
    ...{ function: "f", caller: null, a: 0.43, b: 0.19, share: 0.4, words: "words" },
    ...{ p: 0.017, q: 0.11, change: -0.5, low: -0.65, high: -0.4, visible: null, data_needed: null, needs: "too-much" },
    ...{ seconds_a: 0.5, seconds_b: 0.25 },
    ...more,
  });
  const cases = [
    row({ verdict: "uncertain" }),
    row({ verdict: "not-significant", low: -0.7, high: 0.1, p: 0.3, q: 0.5 }),
    row({ verdict: "not-significant", low: -0.01, high: 0.01, p: 0.3, needs: "nothing", visible: 0.04 }),
  ];
  const side = { groups: 16, ticks: 1000, first: "2026-01-01T00:00:00Z", last: "2026-01-02T00:00:00Z" };
  const [uncertain, open, same] = await page.evaluate(
    async ([all, d]) => {
      const words = await import(new URL("src/compare_words.js", document.baseURI));
      return all.map((r) => ({
        ...words.verdict(r, d, { tests: 27 }),
        ...{ plan: words.plan(r, d), points: words.points(r), effect: words.effectText(r) },
      }));
    },
    [cases, { planned: 0.02, a: side, b: side }],
  );
  point(
    uncertain.text === "words" && uncertain.sign === "▼" && /1 in 20 of 27 tests.*p = 0\.017/.test(uncertain.about),
    "compare: an interval without 0 has a direction, and says how many tests there were",
    uncertain,
  );
  point(
    open.plan === "processes differ too much" && !/very likely|days/.test(open.about),
    "compare: what no amount of data tells is said so, and no change to more than twice is called visible",
    open,
  );
  point(/A rise of 4\.00 % or more would/.test(same.about), "compare: what would have been seen", same);
  point(same.points === "−24" && same.effect === "−250 ms", "compare: points and seconds beside percents", same);
}

async function verdicts(page) {
  await visit(page, `${both}&metric=time-per-call`);
  const names = await page.locator(`${ROW} td:first-child`).allTextContents();
  point(
    names.join() ===
      changed("time-per-call")
        .map((r) => r.function)
        .join(),
    "compare: the rows of the interface that changed",
    names,
  );
  const folded = rowsOf("time-per-call").length - names.length;
  await page.locator("button.rest", { hasText: `Show ${folded} functions without` }).click();
  const all = await page.locator(ROW).count();
  point(all === rowsOf("time-per-call").length, "compare: the others are one click away", [all, folded]);
  const parse = await cells(page, "parse");
  const row = rowsOf("time-per-call").find((r) => r.function === "parse");
  const percent = `+${Math.round(100 * row.change)} %`;
  point(parse.Verdict.includes("▲ slower") && parse.Change === percent, "compare: parse is slower, by how much", [
    parse,
    row,
  ]);
  point(
    parse["Change, 95 % interval"] === `+${Math.round(100 * row.low)} % to +${Math.round(100 * row.high)} %`,
    "compare: within which interval",
    [parse, row],
  );
  const answer = await text(page, ".answer");
  point(answer.startsWith(diff.sentence), "compare: the same answer stands above every metric", answer);
  const open = rowsOf("time-per-call").find((r) => r.verdict === "not-significant" && r.needs === "data");
  const unknown = await cells(page, open.function);
  point(
    unknown.Verdict.includes("cannot tell yet") &&
      /^\d+(\.\d+)? (h|min|days) more$|× the data$/.test(unknown["To detect 2 %"]),
    "compare: what cannot be told says what it needs",
    [unknown, open],
  );
  await page.locator("#metric").selectOption("calls-per-parent");
  await address(page, "metric", "calls-per-parent");
  await ready(page);
  const render = await cells(page, "step → render");
  point(
    render.Verdict.includes("called more often, certain") && render["Calls A"] === "2" && render["Calls B"] === "3",
    "compare: one call more is certain",
    render,
  );
  await page.locator("#metric").selectOption("self");
  await address(page, "metric", "self");
  await ready(page);
  point(
    (await cells(page, "fresh")).Verdict === "+ new" && (await cells(page, "fresh")).Points.startsWith("+"),
    "compare: a function that is new among the shares",
    await cells(page, "fresh"),
  );
  await page.locator(`${ROW} a:text-is("fresh")`).click();
  await address(page, "build", young);
  await ready(page);
  point((await text(page, ".pane h2")) === "fresh", "compare: and opens in the build that has it", page.url());
}

/** Each side has its own build, labels and time; they can be exchanged. */
async function sides(page) {
  await visit(page, "");
  await page.locator("[role=grid] a:text-is('shop')").first().click();
  await address(page, "build", young);
  await page.locator("nav a", { hasText: "Compare" }).click();
  await page.locator(".offers a", { hasText: "db3 against the others" }).click();
  await page.waitForSelector(ROW);
  await ready(page);
  const url = new URL(page.url()).searchParams;
  point(
    url.getAll("match").join() === 'host!="db3"' && url.getAll("bmatch").join() === 'host="db3"',
    "compare: db3 against the other hosts in three clicks",
    page.url(),
  );
  const [others, db3] = ['host!="db3"', 'host="db3"'].map(encodeURIComponent);
  const query = `a=${young}&b=${young}&a.match=${others}&b.match=${db3}`;
  const wanted = await get(`api/v1/diff?${query}&metric=time-per-call`);
  await page.locator("#metric").selectOption("time-per-call");
  await address(page, "metric", "time-per-call");
  await ready(page);
  const parse = await cells(page, "parse");
  const row = wanted.metrics[0].rows.find((r) => r.function === "parse");
  point(parse["Per call A"].startsWith(String(Math.round(1000 * row.a))), "compare: with the numbers of both sides", [
    parse,
    row,
  ]);
  point(/host=db3/.test(await text(page, "#side-b")), "compare: and their labels", await text(page, "#side-b"));
  await page.locator("#swap").click();
  await address(page, "match", 'host="db3"');
  await ready(page);
  point(/host=db3/.test(await text(page, "#side-a")), "compare: the sides change places", await text(page, "#side-a"));
  await page.locator("#side-b").click();
  await page.locator(".panel .chips button").click();
  await address(page, "bmatch", "");
  await ready(page);
  point(!/host/.test(await text(page, "#side-b")), "compare: a label of B goes away by a click");
  await page.locator("#side-b").click();
  await page.waitForFunction(() => document.querySelectorAll("#against option").length > 1);
  await page.locator("#bsince").fill("now-30d");
  await page.locator("form:has(#against) button").click();
  await address(page, "bsince", "now-30d");
  await ready(page);
  point((new URL(page.url()).searchParams.get("since") ?? "") === "", "compare: B has a time of its own", page.url());
}

async function offered(page) {
  await visit(page, `?build=${young}&view=compare`);
  const offers = await page.locator(".offers a").allTextContents();
  point(offers.includes("1.2 → 1.3"), "compare: older against newer is offered", offers);
  await page.locator(".offers a", { hasText: "1.2 → 1.3" }).click();
  await page.waitForSelector(ROW);
  const url = new URL(page.url()).searchParams;
  point(url.get("build") === old && url.get("against") === young, "compare: A is the older one", page.url());
  await visit(page, `?build=${young}&view=compare&against=${young}&bmatch=${encodeURIComponent('host="nowhere"')}`);
  point(/b: nothing matches/.test(await text(page)), "compare: a side without uploads is named", await text(page));
}

/** A comparison that was left before it was answered draws nothing over the next view. */
async function left(page) {
  await visit(page, `?build=${young}`);
  let answer;
  const asked = new Promise((resolve) => {
    page.route("**/api/v1/diff?*", (route) => {
      answer = () => route.continue().catch(() => {});
      resolve();
    });
  });
  await page.goto(base + both, { waitUntil: "commit" });
  await asked;
  await page.locator("nav a", { hasText: "Table" }).click();
  await page.waitForSelector("main [role=grid]");
  await answer();
  await page.unroute("**/api/v1/diff?*");
  await ready(page);
  point((await page.locator(GRID).count()) === 0, "compare: what was left draws nothing", page.url());
}

/** Shares of a box: its text has a sign, its title both numbers. */
async function pictures(page) {
  const self = (name) => rowsOf("total").find((r) => r.function === name);
  for (const [form, box] of [
    ["flame", "svg.flame .box"],
    ["graph", "svg.graph .node"],
  ]) {
    await visit(page, `${both}&form=${form}`);
    await page.waitForSelector(box);
    const labels = await page.locator(box).evaluateAll((all) => all.map((e) => e.getAttribute("aria-label")));
    const parse = labels.find((t) => t.startsWith("parse"));
    const shares = /([\d.]+) % of A, ([\d.]+) % of B, \+([\d.]+) points/.exec(parse ?? "");
    const near = (shown, value) => Math.abs(shown / (100 * value) - 1) < 0.06;
    point(
      shares && near(shares[1], self("parse").a) && near(shares[2], self("parse").b),
      `compare, ${form}: shares of both sides, as the interface says`,
      [labels, self("parse")],
    );
    if (form === "graph")
      point(
        /: larger share \(95 %: \+\d+ % to \+\d+ %\)$/.test(parse),
        "compare, graph: a box says whether it is more than chance",
        parse,
      );
    const shown = await page.locator(`${box}.more`).first().textContent();
    point(shown.includes("▲") && shown.includes("+"), `compare, ${form}: more has a sign and not only a colour`, shown);
    const fewer = await page.locator(`${box}.less`).first().textContent();
    point(fewer.includes("▼") && fewer.includes("−"), `compare, ${form}: less, too`, fewer);
    const named = await page.locator(".legend .delta[title]").evaluateAll((all) => all.map((e) => e.title));
    const kinds = page.locator(`${box}.more, ${box}.less`);
    const coloured = await kinds.evaluateAll((all) => all.map((e) => e.getAttribute("aria-label").split(":")[0]));
    const same = [...new Set(coloured)].sort().join() === named.sort().join();
    point(same && named.length > 1, `compare, ${form}: what is coloured is named above it`, [named, coloured]);
    await page.locator(box).first().focus();
    await page.locator("main details.picture-table summary").click();
    await page.waitForSelector("main details.picture-table tbody tr");
    point(
      (await page.locator("main details.picture-table tbody tr").count()) > 4,
      `compare, ${form}: the same as a table`,
    );
  }
  await visit(page, `${both}&form=flame`);
  await page.locator("svg.flame .box", { hasText: "step" }).first().press("Enter");
  await page.waitForFunction(() => /zoom=/.test(location.search));
  point((await page.locator("svg.flame .above").count()) > 0, "compare, flame: Enter zooms, and the address says so");
  await page.locator("svg.flame .box:focus").press("Escape");
  point((await page.locator("svg.flame .above").count()) === 0, "compare, flame: Escape shows everything again");
}

/** In every look what the comparison says stands high, and before its rows. */
const looks = () =>
  inEveryLook(
    [
      ["suggestions", `?build=${old}&view=compare`],
      ["differences", both],
      ["differences of stacks", `${both}&form=flame&open=boxes`],
      ["differences of graphs", `${both}&form=graph&open=arcs`],
    ],
    async (page, name, viewport) => {
      const top = (selector) =>
        page.locator(selector).evaluateAll((all) => Math.min(...all.map((e) => e.getBoundingClientRect().top)));
      const most = [220, viewport.width > 700 ? 260 : 400];
      const tops = [
        await top(".answer, .offers a"),
        await top(".offers a, [role=grid] tr[data-at], svg .box, svg .node"),
      ];
      point(
        tops[0] <= tops[1] && tops.every((t, i) => t <= most[i]),
        `${name}, ${viewport.width} wide: the answer comes first, and high`,
        tops,
      );
    },
  );

export async function compare() {
  const page = await open({ viewport: { width: 1440, height: 900 } });
  for (const part of [leads, wording, verdicts, sides, offered, left, pictures]) await part(page);
  await page.context().close();
  await looks();
}
