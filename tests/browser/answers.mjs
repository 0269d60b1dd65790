// Answers of the dashboard to questions about a fleet with known differences. Arguments as of dashboard.mjs.
import { compare } from "./compare.mjs";
import { lists } from "./lists.mjs";
import { questions } from "./questions.mjs";
import { finish } from "./page.mjs";
import { watched } from "./watched.mjs";

await compare();
await lists();
await questions();
await watched();
await finish();
