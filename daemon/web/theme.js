// Light or dark, before anything is drawn: as chosen in this browser, else as the system has it. No module: it runs
// first.
{
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}
