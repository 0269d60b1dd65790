// The addresses of the reports that views are made of, and the question that is asked before a view is drawn.
import * as api from "./api.js";
import { question, read } from "./state.js";

/** The report as columns. */
export const flatUrl = (build, params) =>
  api.path(build, "/report", { view: "flat", limit: 0, names: "short", ...params });

/** The tree of stacks. */
export const treeUrl = (state, match = state.match) =>
  api.path(state.build, "/report", { ...question(state), match, format: "tree", names: "short" });

/** Asks for what the view of the address shows first. */
export function ahead() {
  const state = read();
  if (!state.build) return;
  if (state.view === "report") api.ahead(flatUrl(state.build, question(state)));
  else if (["flame", "tree"].includes(state.view) && !state.split) api.ahead(treeUrl(state));
}
