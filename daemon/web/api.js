// Questions to the daemon. Answers are kept until they change: the browser's cache asks again with the ETag.
import { sayCut } from "./dom.js";

// A token in the fragment (#t=…) is not sent with the page's own request; it is kept for this tab.
const fragment = new URLSearchParams(location.hash.slice(1));
if (fragment.has("t")) {
  sessionStorage.setItem("token", fragment.get("t"));
  history.replaceState(null, "", location.pathname + location.search);
}

export const useToken = (token) => sessionStorage.setItem("token", token);
export const hasToken = () => sessionStorage.getItem("token") !== null;

class Refusal extends Error {
  constructor(status, { title = `status ${status}`, detail, code }) {
    super(detail || title);
    Object.assign(this, { status, title, code });
  }
}

async function fetchAnswer(url, signal, token = sessionStorage.getItem("token")) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  let answer;
  try {
    const early = globalThis.early?.url === url ? globalThis.early.answer : undefined; // of theme.js
    delete globalThis.early;
    answer = await (early ?? fetch(url, { headers, signal, cache: "no-cache" }));
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw Object.assign(new Error("The server of this page does not answer.", { cause: error }), { away: true });
  }
  if (answer.ok) {
    if (!token) sessionStorage.removeItem("token"); // this server needs none, and refuses one that it does not know
    return answer;
  }
  if (answer.status === 401 && token) return fetchAnswer(url, signal, "");
  let problem = {};
  try {
    problem = await answer.json();
  } catch {
    // Not a problem document: the status has to do.
  }
  throw new Refusal(answer.status, problem);
}

const asked = new Map(); // answers that are on their way

/** Asks for what json() will want; that takes the answer, once. */
export function ahead(url) {
  const answer = fetchAnswer(url).then((a) => a.json());
  answer.catch(() => {}); // said where it is waited for
  asked.set(url, answer);
}

export async function json(url, signal) {
  const answer = asked.get(url);
  asked.delete(url);
  return answer ?? (await fetchAnswer(url, signal)).json();
}
export const text = async (url, signal) => (await fetchAnswer(url, signal)).text();

/** All rows of a paged list, at most about max; first is the first page, more says whether there are others. The page
 *  says so, too. */
export async function rows(url, max = 5000, signal = undefined) {
  const all = [];
  let first = null;
  let next = null;
  do {
    const page = await json(
      url + (next ? `${url.includes("?") ? "&" : "?"}cursor=${encodeURIComponent(next)}` : ""),
      signal,
    );
    first ??= page;
    for (const row of page.rows) all.push(row);
    next = page.next ?? null;
  } while (next && all.length < max);
  if (next) sayCut(/([\w-]+)(\?|$)/.exec(url)[1], all.length);
  return { rows: all, first, more: next !== null };
}

/** Names of the labels that uploads of the build have. */
export async function labelNames(build, signal) {
  const { rows: labels } = await rows(`api/v1/labels?${query({ build_id: build, limit: "1000" })}`, 5000, signal);
  return labels.map((label) => label.name);
}

/** The question for the values of a label, of uploads of the build. */
export const valuesUrl = (name, build, limit) =>
  `api/v1/labels/${encodeURIComponent(name)}/values?${query({ build_id: build, limit: String(limit) })}`;

/** Parameters as an address has them; lists are said several times, what is empty is not said. */
export function query(params) {
  const all = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) {
    for (const v of [value].flat()) if (v !== undefined && v !== null && v !== "") all.append(key, v);
  }
  return all.toString();
}

/** The path of a question about a build, from what the address bar says. */
export function path(build, what, params = {}) {
  const text = query(params);
  return `api/v1/builds/${encodeURIComponent(build)}${what}${text ? `?${text}` : ""}`;
}
