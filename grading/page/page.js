"use strict";
// Sort a table by a column: by data-v if there is one, by the ranks of its words (medals), by the number with which a
// text begins, else by text. Empty cells and dashes come last either way.
const ends = {"\u221e": Infinity, "\u2212\u221e": -Infinity, "\u2013": "", NaN: ""};
const value = (text, ranks) => {
  if (Object.hasOwn(ends, text)) return ends[text];
  const rank = ranks.indexOf(text);
  if (rank >= 0) return rank;
  const plain = text.replace(/^([$]|< )|,(?=\d{3})/g, "").replace(/^\u2212/, "-");
  return /^[-+]?\d+(\.\d+)?(e[-+]?\d+)?( (±|of|to|\[|\(|comp).*)?$/.test(plain) ? parseFloat(plain) : text;
};
for (const table of document.querySelectorAll("table.sortable")) {
  const ranks = (table.dataset.ranks || "\0").split("|");
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
      const key = (row) => {
        const cell = row.cells[column];
        return value(cell.dataset.v ?? cell.textContent.trim(), ranks);
      };
      const rows = [...table.tBodies[0].rows].map((row) => [key(row), row]);
      rows.sort(([a], [b]) => {
        if (a === "" || b === "") return (a === "") - (b === "");
        const numbers = typeof a === "number" && typeof b === "number";
        const order = numbers ? (a < b ? -1 : +(a > b)) : String(a).localeCompare(b, "en");
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
