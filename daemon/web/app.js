// Lists the builds and links their reports. Names come from strangers: they reach the page as text only.
const state = document.getElementById("state");
const table = document.getElementById("builds");
const body = table.tBodies[0];
const more = document.getElementById("more");

// A token in the fragment (#t=…) is not sent with the page's own request; it is kept for this tab.
const fragment = new URLSearchParams(location.hash.slice(1));
if (fragment.has("t")) {
  sessionStorage.setItem("token", fragment.get("t"));
  history.replaceState(null, "", location.pathname);
}

async function ask(url) {
  const token = sessionStorage.getItem("token");
  const answer = await fetch(url, token ? { headers: { Authorization: `Bearer ${token}` } } : {});
  const json = await answer.json();
  if (!answer.ok) throw new Error(json.detail || json.title || `status ${answer.status}`);
  return json;
}

function cell(row, content, kind) {
  const td = row.insertCell();
  if (kind) td.className = kind;
  if (content instanceof Node) td.append(content);
  else td.textContent = content ?? "";
  return td;
}

function link(text, url) {
  const a = document.createElement("a");
  a.href = url;
  a.textContent = text;
  return a;
}

function count(row, field) {
  return row[`${field}_str`] ?? row[field]?.toLocaleString() ?? "";
}

function show(build) {
  const row = body.insertRow();
  const id = String(build.build_id);
  const report = `api/v1/builds/${encodeURIComponent(id)}/report`;
  const code = document.createElement("code");
  code.textContent = id.length > 16 ? `${id.slice(0, 16)}…` : id;
  code.title = id;
  cell(row, build.name || "?", build.exact === false ? "inexact" : "");
  cell(row, code);
  cell(row, count(build, "uploads"), "n");
  cell(row, count(build, "processes"), "n");
  cell(row, typeof build.seconds === "number" ? build.seconds.toFixed(2) : "", "n");
  cell(row, build.last_seen ? new Date(build.last_seen).toLocaleString() : "");
  const links = document.createElement("span");
  links.append(link("text", `${report}?format=text`), " · ", link("JSON", report));
  cell(row, links);
}

async function load(url) {
  try {
    const page = await ask(url);
    page.rows.forEach(show);
    table.hidden = body.rows.length === 0;
    state.textContent = body.rows.length ? "" : "Nothing has been delivered yet: try “profctl upload”.";
    more.hidden = !page.next;
    more.onclick = () => load(`api/v1/builds?cursor=${encodeURIComponent(page.next)}`);
  } catch (error) {
    state.textContent = `The list could not be loaded: ${error.message}`;
  }
}

load("api/v1/builds");
