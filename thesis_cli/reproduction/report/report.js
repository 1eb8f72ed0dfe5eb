"use strict";
(() => {
  const table = document.getElementById("all-claims");
  const rows = [...table.tBodies[0].rows];
  const form = document.querySelector(".controls");
  const search = document.getElementById("search");
  const verdict = document.getElementById("verdict");
  const section = document.getElementById("section");
  const shown = document.getElementById("shown");
  const texts = rows.map((row) => row.textContent.toLowerCase());

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    rows.forEach((row, i) => {
      const fits = (!verdict.value || row.dataset.verdict === verdict.value)
        && (!section.value || row.dataset.section === section.value)
        && words.every((word) => texts[i].includes(word));
      row.hidden = !fits;
      count += fits;
    });
    shown.textContent = `${count} of ${rows.length} claims`;
  };

  // The filters stand in the address, behind the name of the table: #claims?verdict=holds&search=gumbel
  const fields = { search, verdict, section };
  const note = () => {
    const set = Object.entries(fields).filter(([, field]) => field.value).map(([name, field]) => [name, field.value]);
    history.replaceState(null, "", `#claims${set.length ? `?${new URLSearchParams(set)}` : ""}`);
  };
  const read = () => {
    const [name, query] = location.hash.slice(1).split("?");
    if (name !== "claims" || query === undefined) return;
    const given = new URLSearchParams(query);
    Object.entries(fields).forEach(([key, field]) => { field.value = given.get(key) || ""; });
    filter();
  };

  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return a.localeCompare(b, "en", { numeric: true });
  };
  const sort = (head, column) => {
    const down = head.getAttribute("aria-sort") === "ascending";
    [...head.parentElement.cells].forEach((each) => each.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const sorted = [...rows].sort((a, b) => {
      const [x, y] = [value(a, column), value(b, column)];
      // what has no number comes last, whichever way the others run
      return (Number.isNaN(x) - Number.isNaN(y)) || (Number.isNaN(x) ? 0 : compare(x, y) * (down ? -1 : 1));
    });
    table.tBodies[0].append(...sorted);
  };
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => sort(head, column));
    head.replaceChildren(button);
  });

  const reveal = () => {
    read();
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1).split("?")[0]));
    for (let each = target; each; each = each.parentElement) {
      if (each.tagName === "DETAILS") each.open = true;
    }
    if (target) target.scrollIntoView();
  };
  document.querySelectorAll('a[href="#claims"][data-verdict]').forEach((link) => {
    link.addEventListener("click", () => {
      search.value = "";
      verdict.value = link.dataset.verdict;
      section.value = link.dataset.section || "";
      filter();
      setTimeout(note);
    });
  });

  // A link to a row also copies how to cite it.
  const { version } = document.querySelector("footer").dataset;
  document.querySelectorAll("a.cite").forEach((link) => {
    link.textContent = "copy citation";
    link.setAttribute("aria-label", link.getAttribute("aria-label").replace("link to", "copy citation of"));
    link.addEventListener("click", () => {
      const [judged, statement, source, , measured, error] = [...link.closest("tr").cells].map((cell) => cell.innerText.trim());
      const id = link.hash.slice(1).replace("claim-", "");
      navigator.clipboard?.writeText(`thesis-cli ${version}, claim ${id}: "${statement}" (${source}): ${judged}; measured `
        + `${measured}, error ${error}. ${location.href.split("#")[0]}${link.hash}`);
    });
  });

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = document.createElement("button");
  const root = document.documentElement;
  const other = () => ((root.dataset.theme || (dark.matches ? "dark" : "light")) === "dark" ? "light" : "dark");
  const name = () => { theme.textContent = `${other() === "dark" ? "Dark" : "Light"} colours`; };
  theme.type = "button";
  theme.className = "theme";
  theme.addEventListener("click", () => { root.dataset.theme = other(); name(); });
  dark.addEventListener("change", name);
  name();
  document.querySelector("header").prepend(theme);

  // On paper nothing can be opened. Claims of single experiments stay closed: the last table has them all.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open], .judged)")];
    opened.forEach((each) => { each.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((each) => { each.open = false; }));

  form.hidden = false;
  form.addEventListener("input", () => { filter(); note(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { filter(); note(); }));
  addEventListener("hashchange", reveal);
  // a link to the place that is already in the address does not change it
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link && link.hash === location.hash) reveal();
  });
  filter();
  reveal();
})();
