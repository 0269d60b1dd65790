import { finish } from "./page.mjs";
import { everyView } from "./views.mjs";
import { toolbar } from "./toolbar.mjs";
import { walk } from "./walk.mjs";
try { await everyView(); } catch (e) { console.log('not ok THROWN', e.stack); }
try { await toolbar(); } catch (e) { console.log('not ok THROWN', e.stack); }
try { await walk(); } catch (e) { console.log('not ok THROWN', e.stack); }
await finish();
