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

  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") {
      return (Number.isNaN(a) - Number.isNaN(b)) || a - b || 0;
    }
    return a.localeCompare(b, "en");
  };
  const sort = (head, column) => {
    const down = head.ariaSort === "ascending";
    [...head.parentElement.cells].forEach((each) => each.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const sorted = [...rows].sort((a, b) => compare(value(a, column), value(b, column)) * (down ? -1 : 1));
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
    const target = location.hash && document.getElementById(location.hash.slice(1));
    for (let each = target; each; each = each.parentElement) {
      if (each.tagName === "DETAILS") each.open = true;
    }
    if (target) target.scrollIntoView();
  };
  document.querySelectorAll("[data-filter]").forEach((link) => {
    link.addEventListener("click", () => { verdict.value = link.dataset.filter; filter(); });
  });

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = document.createElement("button");
  const root = document.documentElement;
  theme.type = "button";
  theme.className = "theme";
  const name = () => { theme.textContent = (root.dataset.theme || (dark.matches ? "dark" : "light")) === "dark" ? "Light" : "Dark"; };
  theme.addEventListener("click", () => { root.dataset.theme = theme.textContent.toLowerCase(); name(); });
  name();
  document.querySelector("header").prepend(theme);

  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", reveal);
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
  filter();
  reveal();
})();
