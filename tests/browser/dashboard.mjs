// The dashboard in a headless Chromium: every view with real data, by keyboard alone, and axe-core finds nothing.
// node dashboard.mjs MODULES BASE-URL SOCKET PROFCTL SCREENSHOT-FOLDER|"" [GUARDED-URL TOKEN-FILE]; prints TAP.
import { finish } from "./page.mjs";
import { remember } from "./remember.mjs";
import { guarded, trouble } from "./trouble.mjs";
import { flame } from "./flame.mjs";
import { graph } from "./graph.mjs";
import { polish } from "./polish.mjs";
import { overview } from "./overview.mjs";
import { table } from "./table.mjs";
import { toolbar } from "./toolbar.mjs";
import { everyView } from "./views.mjs";
import { walk } from "./walk.mjs";

const [url, token] = process.argv.slice(7);
await everyView();
await toolbar();
await graph();
await flame();
await table();
await overview();
await polish();
await walk();
await remember();
await trouble();
if (url) await guarded(url, token);
await finish();
