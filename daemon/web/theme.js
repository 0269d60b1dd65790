// What cannot wait for the page's code. No module: it runs first. Light or dark: as chosen in this browser, else as the
// system has it.
{
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}
// The report of the table is asked for now, with the address that asks.js makes: api.js takes the answer.
{
  const address = new URLSearchParams(location.search);
  if (address.get("build") && !address.get("view") && !location.hash) {
    const query = new URLSearchParams({ view: "flat", limit: 0, names: "short" });
    for (const name of ["since", "until", "match", "scope", "static", "dimension", "time"])
      for (const value of address.getAll(name)) if (value) query.append(name, value);
    const url = `api/v1/builds/${encodeURIComponent(address.get("build"))}/report?${query}`;
    const token = sessionStorage.getItem("token");
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    const answer = fetch(url, { headers, cache: "no-cache" });
    answer.catch(() => {}); // said where it is waited for
    globalThis.early = { url, answer };
  }
}
