"use strict";
// Sort a table by a column: numbers by data-v, else by text; empty cells last.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent.trim();
      const rows = [...table.tBodies[0].rows].map((row) => [key(row), row]);
      rows.sort(([a], [b]) => {
        if (a === "" || b === "") return (a === "") - (b === "");
        const order = a !== "" && b !== "" && !isNaN(a) && !isNaN(b) ? a - b : a.localeCompare(b, "en");
        return down ? -order : order;
      });
      table.tBodies[0].append(...rows.map(([, row]) => row));
    });
  });
}
// Show only the rows of a table, or the articles of a list, that contain every word of the filter.
for (const input of document.querySelectorAll("input[data-filter]")) {
  const target = document.getElementById(input.dataset.filter);
  const count = document.getElementById(input.dataset.filter + "-count");
  const items = () => [...(target.tBodies ? target.tBodies[0].rows : target.children)];
  const text = (item) =>
    [item.textContent, ...[...item.querySelectorAll("[title]")].map((part) => part.title)].join(" ").toLowerCase();
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    let shown = 0;
    for (const item of items()) {
      item.hidden = !words.every((word) => text(item).includes(word));
      shown += !item.hidden;
    }
    count.textContent = shown + " of " + items().length;
  });
}
