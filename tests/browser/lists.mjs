// Lists of a build that say what a report does not: functions that were never called, and cycles.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

import { builds, get, id, inEveryLook, open, point, profctl, ready, text, visit } from "./page.mjs";

const ROW = "[role=grid] tbody tr[data-at]";
const shop = builds
  .filter((b) => b.name === "/srv/shop")
  .reduce((a, b) => (Date.parse(b.last_seen) > Date.parse(a.last_seen) ? b : a)).build_id;

async function never(page) {
  const wanted = await get(`api/v1/builds/${shop}/never-called`);
  await visit(page, `?build=${shop}&view=never`);
  const names = await page.locator(`${ROW} td:first-child`).allTextContents();
  point(
    names.includes("retired") && names.length === wanted.rows.length,
    "never called: the functions of the interface",
    names,
  );
  const sizes = await page.locator(`${ROW} td:nth-child(2)`).allTextContents();
  point(sizes.join() === wanted.rows.map((r) => `${r.bytes} B`).join(), "never called: by size, largest first", sizes);
  const files = await page.locator(`${ROW} td:last-child`).allTextContents();
  point(files.length > 0 && files.every((name) => name === "shop.c"), "never called: the file of each", files);
  const answer = await text(page, ".answer");
  point(
    answer.includes(`${wanted.functions} of ${wanted.counted_functions} functions`) &&
      answer.includes(`none of ${wanted.processes_started} processes`),
    "never called: how many, and how sure that is",
    answer,
  );
  const whole = wanted.rows.filter((r) => !r.entered_elsewhere && !r.inlined).length;
  const footer = await text(page, "#status");
  const said = new RegExp(`^${whole} of ${wanted.functions} functions? never called`);
  point(whole === wanted.functions && said.test(footer), "never called: the footer counts the same", [footer, wanted]);
  await page.keyboard.press("/");
  await page.keyboard.type("retired");
  point((await page.locator(ROW).count()) === 1, "never called: the filter");
  await page.locator(`${ROW} a`, { hasText: "retired" }).click();
  await page.waitForSelector("[role=grid][aria-label=Lines]");
  const there = await text(page);
  point(
    /No call and no tick of this function was seen/.test(there) && /shop\.c:\d+/.test(there),
    "never called: its lines",
  );
  await visit(page, `?build=${shop}&view=never&since=2001-01-01&until=2001-01-02`);
  point(
    /nothing matches|not found|No upload/i.test(await text(page)),
    "never called: nothing in a time without uploads",
    await text(page),
  );
}

async function cycles(page) {
  const calc = id("calc");
  const { rows } = await get(`api/v1/builds/${calc}/cycles`);
  await visit(page, `?build=${calc}&view=cycles`);
  const shown = await text(page);
  const [hottest] = [...rows].sort((a, b) => b.percent - a.percent);
  const said = rows.length > 1 ? `The hottest is cycle ${hottest.number} with` : `Cycle ${hottest.number}`;
  point(
    shown.includes(said) && hottest.members.slice(0, 3).every((m) => shown.includes(m.name)),
    "cycles: which is hottest, and who is in it",
    shown,
  );
  const [arc] = hottest.break;
  point(
    shown.includes(`${arc.caller} → ${arc.callee} (${arc.calls.toLocaleString("en")} call`),
    "cycles: which call would break it",
    [shown, hottest.break],
  );
  await page.locator("main details summary").first().press("Enter");
  await page.waitForSelector("main details[open] tbody tr");
  point(
    (await page.locator("main details[open] tbody tr").count()) === hottest.arcs.length,
    "cycles: the calls among members",
  );
  await page.locator("section.one-cycle table a").first().click();
  await page.waitForSelector(".pane h2");
  point(
    hottest.members.some((m) => page.url().includes(`fn=${m.address}`)),
    "cycles: a member opens its callers and callees",
    page.url(),
  );
  const tangle = await get(`api/v1/builds/${id("tangle")}/cycles?limit=1`);
  await visit(page, `?build=${id("tangle")}&view=cycles&open=arcs${tangle.rows[0].number}`);
  const cut = await text(page);
  point(
    cut.includes(`${tangle.count} cycles`) &&
      cut.includes(`and ${tangle.rows[0].break_count - 10} more.`) &&
      cut.includes(`The first 200 of ${tangle.rows[0].arc_count.toLocaleString("en")}.`),
    "cycles: of a large one, every list that is cut says so",
    cut,
  );
  await visit(page, `?build=${id("tangle")}&view=cycles&match=${encodeURIComponent('part="cold"')}`);
  const cold = await text(page, ".answer");
  point(cold === "No samples fell in any cycle.", "cycles: where none has a tick, none is the hottest", cold);
  await visit(page, `?build=${shop}&view=cycles`);
  point(/call each other in a circle/.test(await text(page)), "cycles: without one, it says so", await text(page));
}

/** A bar is cut only beside many others, far above nine tenths of them. Where marks of versions would touch, that of
 *  the build stays, then the newest; one at the right edge is whole. */
async function bars(page) {
  const tops = await page.evaluate(async () => {
    const { ceiling } = await import(new URL("src/timeline.js", document.baseURI));
    const like = (n, ...more) => ceiling([...new Array(n).fill(1), ...more]);
    return [ceiling([]), ceiling([0.24, 19]), like(10, 100), like(11, 100), like(30, 3.9), like(30, 50, 60)];
  });
  point(tops.join() === "0,19,100,4,3.9,4", "bars: what the highest one stands for", tops);
  await page.setViewportSize({ width: 390, height: 844 });
  await visit(page, `?build=${shop}`);
  const shown = (own, hours) =>
    page.evaluate(
      async ([build, times]) => {
        const { charts } = await import(new URL("src/timeline.js", document.baseURI));
        const range = { from: 0, width: 3600, bars: 100 };
        const versions = times.map((hour, n) => ({
          ...{ version: `1.${n + 1}`, build_id: String(n) },
          first: new Date(hour * 3600e3).toISOString(),
        }));
        const about = { id: "made", label: "made", range, rows: [], parts: [["x", () => 0, String]] };
        const strip = charts({ ...about, versions, state: { build } });
        document.querySelector("main").append(strip);
        const { left, right } = strip.querySelector(".marks").getBoundingClientRect();
        const marks = [...strip.querySelectorAll(".marks span")].map((m) => [m.textContent, m.getBoundingClientRect()]);
        const whole = marks.every(([, box]) => box.left >= left - 1 && box.right <= right + 1);
        const apart = marks.every(([, box], n) => n === 0 || marks[n - 1][1].right <= box.left);
        strip.remove();
        return [...marks.map(([words]) => words), whole, apart].join();
      },
      [own, hours],
    );
  const marks = [
    await shown("0", [50, 51]),
    await shown("1", [50, 51, 52]),
    await shown("", [50, 51]),
    await shown("", [5, 50, 99.9]),
  ];
  const wanted = ["1.1", "1.2", "1.2", "1.1,1.2,1.3"].map((all) => `${all},true,true`);
  point(marks.join(" ") === wanted.join(" "), "versions: the marks that stay, whole and apart, on a phone", marks);
  await page.setViewportSize({ width: 1440, height: 900 });
}

/** The row of the function that the address names is the marked one. */
async function marked(page) {
  await visit(page, "?view=functions&fn=parse");
  const row = await page.locator(`${ROW}.active td:first-child a`).first().getAttribute("title");
  const pane = await text(page, ".pane h2");
  point(row === "parse" && pane === "parse", "functions: the open one is marked", [row, pane]);
  const { programs } = await get("api/v1/functions?limit=1");
  const line = await text(page, ".headline");
  point(line.includes(` ${programs} builds,`), "functions: builds are counted as the overview counts them", line);
}

/** The charts of a function have the marks of versions, and dragging in one of them sets the time. */
async function overTime(page) {
  await visit(page, `?build=${shop}&fn=parse`);
  const versions = await page.locator(".over-time .marks span").allTextContents();
  point(versions.join() === "1.3", "over time: the version stands where it appeared", versions);
  const picture = page.locator(".over-time figure svg").nth(1);
  await picture.scrollIntoViewIfNeeded();
  const { x, y, width, height } = await picture.boundingBox();
  const before = page.url();
  const chosen = () => page.getAttribute("#series-brush", "aria-valuetext");
  await page.mouse.click(x + width / 2, y + height / 2);
  const clicked = [await chosen(), page.url()];
  point(clicked.join() === ["no selection", before].join(), "over time: a plain click selects nothing", clicked);
  await page.mouse.move(x + 1, y + height / 2);
  await page.mouse.down();
  await page.mouse.move(x + width / 2, y + height / 2);
  const dragged = await chosen();
  await picture.dispatchEvent("pointercancel");
  const cancelled = await chosen();
  await page.mouse.up();
  point(
    / to .*: /.test(dragged) && cancelled === "no selection" && (await chosen()) === cancelled && page.url() === before,
    "over time: a gesture that the browser takes away selects nothing",
    [dragged, cancelled, page.url()],
  );
  await page.mouse.move(x + 1, y + height / 2);
  await page.mouse.down();
  await page.mouse.move(x + width / 2, y + height / 2);
  const readout = await text(page, ".over-time .readout");
  await page.mouse.up();
  await page.waitForFunction(() => new URLSearchParams(location.search).has("until"));
  await ready(page);
  const url = new URL(page.url()).searchParams;
  const calls = await page.locator(".pane .facts dd").nth(2).textContent();
  point(
    /Calls ([\d,.]+)/.exec(readout)?.[1] === calls && Date.parse(url.get("since")) < Date.parse(url.get("until")),
    "over time: dragging says what is in the range, and sets it",
    [readout, calls, page.url()],
  );
  await page.focus("#series-brush");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !new URLSearchParams(location.search).has("since"));
  await ready(page);
  await page.waitForFunction(() => document.activeElement.id === "series-brush");
  point(true, "over time: the keys keep the focus when the charts are drawn anew");
}

/** What profctl annotate says of a function, by source line. */
const annotated = (name, ...more) =>
  JSON.parse(
    execFileSync(profctl, ["annotate", shop, name, "--json", "--exe", `${process.env.HOME}/shop2`, ...more], {
      encoding: "utf8",
    }),
  );
const counts = (values) => values.filter(Boolean).map((n) => Math.round(n).toLocaleString("en"));

async function code(page) {
  const step = (await get(`api/v1/builds/${shop}/functions?name=step`)).rows.find((f) => f.name === "step");
  const wanted = await get(`api/v1/builds/${shop}/functions/${step.address}/addresses`);
  await visit(page, `?build=${shop}&view=code&fn=${step.address}`);
  const { rows: lines } = annotated("step");
  const cells = (n) => page.locator(`${ROW} td:nth-child(${n})`).allTextContents();
  const places = (await page.locator(`${ROW} .place`).allTextContents()).join();
  point(places === lines.map((r) => `shop.c:${r.line}`).join(), "code: the lines of profctl annotate", [places, lines]);
  const ticks = await cells(5);
  point(ticks.filter(Boolean).join() === counts(lines.map((r) => r.ticks)).join(), "code: and their ticks", [
    ticks,
    lines,
  ]);
  const [range] = (await cells(4)).filter(Boolean);
  const ends = /^([\d.]+)–([\d.]+) s$/.exec(range);
  const tick = wanted.seconds / wanted.ticks;
  const near = (shown, value) => Math.abs(shown - value * tick) < 0.11;
  point(ends && near(ends[1], lines[0].low) && near(ends[2], lines[0].high), "code: and their intervals", [
    range,
    lines,
  ]);
  const calls = await page.locator(ROW, { hasText: "→" }).allTextContents();
  point(
    calls.length === wanted.calls.length &&
      wanted.calls.every((c) => calls.some((r) => r.includes(c.callee) && r.includes(c.calls.toLocaleString("en")))),
    "code: below a line each call site with its calls",
    [calls, wanted.calls],
  );
  await opened(page, lines[0].line);
  await page.locator(".presets a", { hasText: "Addresses" }).click();
  await page.waitForSelector("[role=grid][aria-label=Addresses]");
  const byAddress = await cells(5);
  point(
    byAddress.filter(Boolean).join() === counts(wanted.rows.map((r) => r.ticks)).join(),
    "code: the ticks of each address",
    [byAddress, wanted.rows],
  );
  await page.locator(`${ROW} a`, { hasText: "render" }).click();
  await page.waitForSelector(".pane h2");
  point((await text(page, ".pane h2")) === "render", "code: a callee opens", page.url());
  await visit(page, `?build=${shop}&view=code`);
  await page.locator(".offers a", { hasText: /^parse$/ }).click();
  await page.waitForSelector(ROW);
  point(/fn=0x/.test(page.url()), "code: without a function, those with the most time are offered", page.url());
  await visit(page, `?build=${id("calc")}&view=code&fn=main`);
  point(/Source lines are not known.*profctl symbols/.test(await text(page)), "code: without lines, what to do");
}

/** The same by instruction, once the file was sent with its code. */
async function instructions(page) {
  await visit(page, `?build=${shop}&view=code&fn=step`);
  point(/profctl symbols --code/.test(await text(page)), "code: without instructions, what to do", await text(page));
  execFileSync(profctl, ["symbols", "--code", `${process.env.HOME}/shop2`]);
  const answer = await get(`api/v1/builds/${shop}/functions/step/addresses`);
  const { rows: wanted } = annotated("step", "--asm");
  await visit(page, `?build=${shop}&view=code&fn=step`);
  const asm = page.locator("[role=grid][aria-label='All instructions'] tbody tr[data-at]");
  const beside = await asm.locator(".place").allTextContents();
  const right = beside.length > 0 && beside.every((one) => /^\+0x/.test(one));
  point(right, "code: the instructions beside the lines", beside);
  const marked = page.locator("[role=grid][aria-label='All instructions'] tr.of");
  const of = await marked.count();
  await asm.first().click();
  const line = await page.locator("[role=grid][aria-label=Lines] tr.active .place").textContent();
  const entry = answer.lines.find((l) => l.address === answer.function.address).line;
  point(
    of > 0 && line === `shop.c:${entry}` && (await asm.first().getAttribute("class")).includes("of"),
    "code: those of the hottest line are marked, and one leads to its line",
    [of, line, entry],
  );
  await page.locator(".presets a", { hasText: "Instructions" }).click();
  await page.waitForSelector("[role=grid][aria-label=Instructions]");
  const rows = page.locator(ROW, { has: page.locator(".place:not(.head)") });
  const places = await rows.locator(".place").allTextContents();
  const from = Number.parseInt(wanted[0].address, 16);
  point(
    places.join() === wanted.map((r) => `+0x${(Number.parseInt(r.address, 16) - from).toString(16)}`).join(),
    "code: the instructions of profctl annotate",
    [places, wanted],
  );
  const own = await page.evaluate(async (a) => {
    const { instructionsOf } = await import(new URL("src/code_instructions.js", document.baseURI));
    return instructionsOf(a)
      .rows.filter((row) => row.at !== undefined)
      .map((row) => row.ticks ?? 0);
  }, answer);
  // profctl puts the ticks of a bin to its first instruction: before the first one of each bin, both have the same.
  const before = (list, n) => list.slice(0, n).reduce((sum, x) => sum + x, 0);
  const theirs = wanted.map((r) => r.ticks);
  const differ = wanted.filter((r, n) => r.ticks > 0 && Math.abs(before(own, n) - before(theirs, n)) > 1e-6);
  point(
    !differ.length && theirs.some(Boolean) && Math.abs(before(own) - before(theirs)) < 1e-6,
    "code: with their ticks",
    [differ, own, theirs],
  );
  const links = await page.locator(`${ROW} .callee a`).allTextContents();
  const heads = await page.locator(`${ROW} .place.head`).allTextContents();
  point(
    links.join() === answer.calls.map((c) => c.callee).join() &&
      heads.length > 0 &&
      heads.every((h) => /^shop\.c:\d+$/.test(h)),
    "code: a call links to its callee, and lines stand between",
    [links, answer.calls, heads],
  );
}

const choose = (page, name, content) =>
  page.locator("#sources").setInputFiles({ name, mimeType: "text/plain", buffer: Buffer.from(content) });

/** The text of a file that the reader opens stands beside its lines; another file is refused in words. */
async function opened(page, line) {
  const name = "shop.c";
  await choose(page, "other.c", "int x;");
  await page.waitForFunction(() => /No line of this function is in other\.c/.test(document.body.textContent));
  await choose(page, name, readFileSync(`${process.env.HOME}/${name}`, "utf8"));
  await page.waitForSelector(`${ROW} .text`);
  const texts = await page.locator(ROW, { has: page.locator(".text") }).allTextContents();
  const started = new RegExp(`^${line}\\D`);
  const row = texts.find((one) => started.test(one)) ?? "";
  point(texts.indexOf(row) > 0, "code: lines around those that have code", texts);
  await page.reload();
  await page.waitForSelector(`${ROW} .text`);
  point(true, "code: the browser keeps the file for the build");
  point(
    started.test(row) && row.includes("parse(i) + render(i)"),
    "code: a source file that is opened",
    row,
  );
  await choose(page, name, "one line");
  await page.waitForSelector(".warning");
  point(/fewer lines/.test(await text(page, ".warning")), "code: a file that is too short is said to be another one");
}

/** Where the debug information has the MD5 of a file, the text of another file does not stand beside its lines. */
async function digested(page) {
  const source = readFileSync(`${process.env.HOME}/spin.c`);
  const spin = id("spin");
  const { files } = await get(`api/v1/builds/${spin}/functions/spin/addresses`);
  const md5 = createHash("md5").update(source).digest("hex");
  const stated = files.length === 1 && files[0].md5 === md5 && /spin\.c$/.test(files[0].file);
  point(stated, "code: the MD5 of its file", files);
  await visit(page, `?build=${spin}&view=code&fn=spin`);
  await choose(page, "spin.c", String(source).replace("i++", "i+=1"));
  await page.waitForSelector("main .warning");
  point(
    /^spin\.c: not what was compiled/.test(await text(page, "main .warning")) &&
      !(await page.locator(`${ROW} .text`).count()),
    "code: a file with another MD5 is not shown",
    await text(page, "main .warning"),
  );
  await choose(page, "spin.c", source);
  await page.waitForSelector(`${ROW} .text`);
  point(
    /spin\.c: by its MD5 the file that was compiled/.test(await text(page)) &&
      !(await page.locator("main .warning").count()),
    "code: a file with its MD5 is",
    await text(page),
  );
  const vectors = [
    ["", "d41d8cd98f00b204e9800998ecf8427e"],
    ["abc", "900150983cd24fb0d6963f7d28e17f72"],
    ["message digest", "f96b697d7cb7938d525a2f31aaf161d0"],
    ["1234567890".repeat(8), "57edf4a22be3c955ac49da2e2107b67a"],
  ];
  const random = Array.from({ length: 130 }, (_, n) => String.fromCharCode(65 + ((n * n) % 57)).repeat(n));
  for (const one of random) vectors.push([one, createHash("md5").update(one).digest("hex")]);
  const digests = await page.evaluate(
    async (all) => {
      const { md5: own } = await import(new URL("src/md5.js", document.baseURI));
      return all.map((one) => own(new TextEncoder().encode(one)));
    },
    vectors.map(([one]) => one),
  );
  const wrong = vectors.filter(([, wanted], i) => digests[i] !== wanted);
  point(wrong.length === 0, "MD5: the vectors of RFC 1321, and every length up to two blocks", wrong);
}

/** Times have the digits of their ticks in every list. */
async function digits(page) {
  const cells = async (query) => {
    await visit(page, query);
    const rows = await page.locator(ROW).evaluateAll((all) => all.map((r) => [...r.cells].map((c) => c.textContent)));
    return Object.fromEntries(rows.map((r) => [r[0].replace(/cycle \d+$/, ""), r.slice(1, 3)]));
  };
  const report = await cells(`?build=${id("calc")}`);
  const functions = await cells(`?view=functions&match=${encodeURIComponent('service="calc"')}`);
  point(
    Object.keys(functions).length > 3 && Object.entries(functions).every(([f, t]) => report[f]?.join() === t.join()),
    "functions: the times and shares of the report",
    Object.entries(functions)
      .map(([f, shown]) => [f, shown, report[f]])
      .filter(([, shown, wanted]) => wanted?.join() !== shown.join()),
  );
  const unlike = await page.evaluate(async () => {
    const { amounts, share } = await import(new URL("src/format.js", document.baseURI));
    const [more, less] = [1 + 2 ** -50, 1 - 2 ** -50]; // what another order of the same sum gives
    const wrong = [];
    for (let of = 1; of <= 400; of++) {
      const amount = amounts("seconds", { ticks: of, seconds: of / 100 });
      for (let n = 1; n <= of; n++) {
        const shown = [less, 1, more].map((by) => [amount((n / 100) * by), share(((100 * n) / of) * by, of)].join());
        if (new Set(shown).size > 1) wrong.push([n, of, ...shown]);
      }
    }
    return wrong;
  });
  point(unlike.length === 0, "the digits of an amount do not depend on the last bits of a sum", unlike.slice(0, 5));
  const outside = await page.evaluate(async () => {
    const { amounts } = await import(new URL("src/format.js", document.baseURI));
    const unit = { h: 3600, min: 60, s: 1, ms: 1e-3, µs: 1e-6, us: 1e-6, ns: 1e-9 };
    const parse = (text, of = text) => Number.parseFloat(text) * unit[of.split(" ").at(-1)];
    const wrong = [];
    for (let n = 0; n < 3000; n++) {
      const amount = amounts("seconds", { ticks: 94 + 7 * n, seconds: 0.94 + 0.07 * n });
      const value = 0.01 * (1 + ((n * 7919) % (94 + 7 * n)));
      const [low, high] = [value * (1 - (n % 89) / 90), value * (1 + (n % 53) / 50)];
      const range = amount.between(low, high);
      const [from, to] = range.split("–").map((text) => parse(text, range));
      const shown = parse(amount(value));
      if (!(from <= shown * (1 + 1e-9) && shown <= to * (1 + 1e-9))) wrong.push([value, amount(value), range]);
    }
    return wrong;
  });
  point(outside.length === 0, "an amount is shown inside its interval", outside.slice(0, 5));
}

/** Hosts by their last contact, each once; a row leads to the functions of its host. */
async function hosts(page) {
  const { rows } = await get("api/v1/hosts");
  await visit(page, "?view=hosts");
  const counts = (await page.locator(".contacts text").allTextContents()).map(Number);
  const all = counts.reduce((a, b) => a + b, 0);
  point(counts.length > 1 && all === rows.length, "hosts: a picture has each once", counts);
  const query = new URLSearchParams({ match: 'host="zip"', since: "now-1d", limit: "1" });
  const { seconds } = await get(`api/v1/functions?${query}`);
  const day = page.locator(`${ROW}:has(a:text-is("zip")) .trend`);
  await day.locator("svg").waitFor();
  const shown = (await day.textContent()).trim();
  point(Math.abs(parseFloat(shown) / seconds - 1) < 0.05, "hosts: the time of a library counts once", [shown, seconds]);
  const name = await page.locator(`${ROW} a`).first().textContent();
  await page.locator(`${ROW} td`).nth(1).click();
  await page.waitForFunction(() => new URLSearchParams(location.search).get("view") === "functions");
  const match = new URL(page.url()).searchParams.get("match");
  point(match === `host="${name}"`, "hosts: a row leads to the functions of its host", [match, name]);
}

/** On a phone, the lists of hosts, cycles and lines are whole. */
async function slim() {
  const page = await open({ viewport: { width: 390, height: 844 } });
  const spin = id("spin");
  const { functions } = await get(`api/v1/builds/${spin}/report?limit=0`);
  for (const [name, query] of [
    ["hosts", "?view=hosts"],
    ["cycles", `?build=${id("tangle")}&view=cycles`],
    ["code", `?build=${spin}&view=code&fn=${functions.find((f) => f.name === "spin").address}`],
  ]) {
    await visit(page, query);
    const cut = await page
      .locator("main .scroll, main th, main td.n, main [role=grid] .named > a")
      .evaluateAll((all) => all.filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent));
    point(cut.length === 0, `${name}, 390 wide: nothing is cut`, cut);
  }
  await page.context().close();
}

export async function lists() {
  const page = await open({ viewport: { width: 1440, height: 900 } });
  const parts = [never, cycles, bars, marked, overTime, code, digested, instructions, digits, hosts];
  for (const part of parts) await part(page);
  await page.context().close();
  await slim();
  await inEveryLook([
    ["never called", `?build=${shop}&view=never`],
    ["cycles", `?build=${id("calc")}&view=cycles`],
    ["code", `?build=${shop}&view=code&fn=${(await get(`api/v1/builds/${shop}/functions?name=step`)).rows[0].address}`],
    ["instructions", `?build=${shop}&view=code&fn=step&form=instructions`],
    ["code of which function", `?build=${shop}&view=code`],
  ]);
}
