"use strict";
// Sort a table by a column: by data-v if there is one, by the ranks of its words (medals), by a duration, by the number
// with which a text begins, else by text. Empty cells and dashes come last either way.
const units = { h: 3600, min: 60, s: 1 };
const ends = {"\u221e": Infinity, "\u2212\u221e": -Infinity, "\u2013": "", NaN: ""};
const value = (text, ranks) => {
  if (Object.hasOwn(ends, text)) return ends[text];
  const rank = ranks.indexOf(text);
  if (rank >= 0) return rank;
  const plain = text.replace(/^([$]|< )|,(?=\d{3})/g, "").replace(/^\u2212/, "-");
  if (/^([\d.]+ (h|min|s) ?)+$/.test(plain)) {
    return [...plain.matchAll(/([\d.]+) (h|min|s)/g)].reduce((sum, [, count, unit]) => sum + count * units[unit], 0);
  }
  return /^[-+]?\d+(\.\d+)?(e[-+]?\d+)?( (±|of|to|\[|\(|comp).*)?$/.test(plain) ? parseFloat(plain) : text;
};
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
// On narrow screens a row is a list, in which each cell is labelled with the head of its column.
for (const table of all("table.stack")) {
  const names = [...table.tHead.rows[0].cells].map((head) => head.textContent);
  for (const row of table.tBodies[0].rows) {
    [...row.cells].forEach((cell, column) => column && (cell.dataset.label = names[column]));
  }
}
for (const table of all("table.sortable")) {
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
// Show only the rows of a table that contain every word of the filter.
for (const input of all("input[data-filter]")) {
  const target = document.getElementById(input.dataset.filter);
  const count = document.getElementById(input.dataset.filter + "-count");
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    let shown = 0;
    for (const row of target.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    count.textContent = shown + " of " + target.tBodies[0].rows.length;
  });
}

// The list of all runs: the name and the agent of a row without them are those of the row above.
const runs = document.getElementById("all");
if (runs) {
  let above = ["", ""];
  for (const row of runs.tBodies[0].rows) {
    above = above.map((text, column) => (row.cells[column].textContent ||= text));
  }
}
// Links to what the store has of a run: its folder, its trajectory and its log.
if (runs && runs.dataset.root) {
  const groups = JSON.parse(runs.dataset.groups);
  const targets = { files: "", trajectory: "trajectory.html", log: "logs/agent.log" };
  for (const cell of all("[data-l]", runs)) {
    const [name, agent, seed] = [...cell.parentElement.cells].map((each) => each.textContent);
    const folder = [runs.dataset.root, "runs", groups[agent], name, seed].map((part) => encodeURI(part)).join("/");
    for (const [text, target] of Object.entries(targets)) {
      if (!cell.dataset.l.includes(text[0])) continue;
      const link = document.createElement("a");
      link.href = `${folder}/${target}`;
      link.textContent = text;
      cell.append(" ", link);
    }
  }
}

// On paper, the conditions of the runs are never left out.
addEventListener("beforeprint", () => all("#conditions > details").forEach((part) => (part.open = true)));

// In the card of a competition, the lines of the agent that is pointed at stand out.
for (const table of all(".seeds")) {
  const lines = all(".timed [data-line]", table.parentElement);
  if (!lines.length) continue;
  const show = (row) => {
    const name = row && row.cells[0].textContent;
    for (const line of lines) line.classList.toggle("faint", !!row && line.dataset.line !== name);
  };
  table.addEventListener("pointerover", (event) => show(event.target.closest("tr")));
  table.addEventListener("pointerleave", () => show(null));
}

// What is chosen: the split of the first figure, whether published agents are shown, and the filters. It is in the
// address, so that a link shows the same.
const ranking = document.querySelector("table.headline");
const published = document.getElementById("published-rows");
const filters = document.getElementById("filters");
const first = ranking ? ranking.dataset.split : "";

function rank(split) {
  if (!ranking.querySelector("[data-agent]")) return;
  ranking.dataset.split = split;
  for (const part of all("[data-split]", ranking)) part.classList.toggle("on", part.dataset.split === split);
  // The best first, then rates of a part of the split, then those that are not known.
  const key = (row) => {
    const cell = row.querySelector(`td[data-split="${CSS.escape(split)}"]`);
    return cell.dataset.v ? 2 * !!cell.querySelector(".partial") - cell.dataset.v : 4;
  };
  const rows = [...ranking.tBodies[0].rows];
  rows.sort((a, b) => key(a) - key(b));
  ranking.tBodies[0].append(...rows);
  for (const row of all("tr.reference", ranking)) row.hidden = !(published && published.checked);
}

function filter() {
  if (!filters) return;
  const wanted = Object.fromEntries(all("select", filters).map((each) => [each.name, each.value]));
  const boxes = all("input[name=agent]", filters);
  const agents = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
  const left = new Set();
  for (const each of all(".comp")) {
    const leaks = each.dataset.leaks === undefined ? "no" : "yes";
    const right = (name, value) => !wanted[name] || wanted[name] === value;
    const kept =
      right("split", each.dataset.split) && right("category", each.dataset.category) && right("leaks", leaks);
    each.hidden = !kept;
    if (kept) left.add(each.dataset.id);
  }
  const known = new Set(all(".comp").map((each) => each.dataset.id));
  const out = (name) => known.has(name) && !left.has(name);
  for (const table of all(".matrix, #all, #failed, #costs")) {
    for (const row of table.tBodies[0].rows) {
      const name = row.cells[0].querySelector(".id") || row.cells[0];
      const agent = table.matches("#all, #failed") && boxes.length ? row.cells[1].textContent : null;
      row.classList.toggle("out", out(name.textContent) || (agent !== null && !agents.has(agent)));
    }
  }
  if (boxes.length) {
    const columns = boxes.flatMap((box) => Array(+box.dataset.seeds).fill(box.value));
    for (const row of all(".matrix tr")) {
      const group = row.querySelector(".group");
      const names = group ? boxes.map((box) => box.value) : columns;
      names.forEach((name, n) => row.cells[n + 2].classList.toggle("out", !agents.has(name)));
    }
    for (const row of all("tr[data-agent]")) row.classList.toggle("out", !agents.has(row.dataset.agent));
    for (const part of all("[data-line]")) part.classList.toggle("out", !agents.has(part.dataset.line));
  }
  const some = boxes.length && agents.size < boxes.length ? `${agents.size} of ${boxes.length} agents` : "";
  const few = left.size < known.size ? `${left.size} of ${known.size} competitions` : "";
  const what = [some, few].filter(Boolean).join(", ");
  document.getElementById("chosen").textContent =
    what && `${what} in figures and tables of runs; rates remain those of whole splits.`;
}

function remember() {
  const state = new URLSearchParams();
  if (ranking && ranking.dataset.split !== first) state.set("figure", ranking.dataset.split);
  if (published && published.checked) state.set("published", "1");
  if (filters) {
    for (const each of all("select", filters)) if (each.value) state.set(each.name, each.value);
    const boxes = all("input[name=agent]", filters);
    const agents = boxes.filter((box) => box.checked);
    if (agents.length < boxes.length) for (const box of agents) state.append("agent", box.value);
  }
  history.replaceState(null, "", "#" + state);
}

// The address: a choice as above, or the name of a part, which is opened.
function follow() {
  const hash = decodeURIComponent(location.hash.slice(1));
  if (!location.hash.includes("=")) {
    const target = hash && document.getElementById(hash);
    if (!target) return;
    const inner = target.querySelector(":scope > details");
    if (inner) inner.open = true;
    for (let each = target; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
    target.scrollIntoView();
    return;
  }
  const state = new URLSearchParams(location.hash.slice(1));
  if (published) published.checked = state.has("published");
  if (filters) {
    for (const each of all("select", filters)) each.value = state.get(each.name) || "";
    const agents = state.getAll("agent");
    for (const box of all("input[name=agent]", filters)) {
      box.checked = !agents.length || agents.includes(box.value);
    }
  }
  if (ranking) rank(state.get("figure") || first);
  filter();
}

if (ranking) {
  for (const head of all("thead [data-split]", ranking)) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(head.firstChild);
    head.prepend(button);
    button.addEventListener("click", () => {
      rank(head.dataset.split);
      remember();
    });
  }
  rank(first);
}
if (published) {
  published.addEventListener("change", () => {
    rank(ranking.dataset.split);
    remember();
  });
}
if (filters) {
  filters.addEventListener("submit", (event) => event.preventDefault());
  filters.addEventListener("change", () => {
    filter();
    remember();
  });
}
addEventListener("hashchange", follow);
for (const link of all('a[href^="#"]')) link.addEventListener("click", () => setTimeout(follow));
follow();

// Copies: figures as SVG, tables as CSV and Markdown, of what is shown.
function put(text, button) {
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
  const before = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = before), 1200);
  button.dataset.copied = text;
}
function copies(place, offers) {
  const box = document.createElement("p");
  box.className = "copies screen";
  for (const [text, make] of offers) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.addEventListener("click", () => put(make(), button));
    box.append(button);
  }
  place.after(box);
}
// The first figure has its numbers in its rows, because its cells show several at once.
const cells = (table) => {
  const rows = all("tr", table).filter((row) => row.offsetHeight);
  if (table.dataset.columns) {
    const numbers = rows.flatMap((row) => JSON.parse(row.dataset.numbers || "[]"));
    return [JSON.parse(table.dataset.columns), ...numbers].map((row) => row.map(String));
  }
  return rows.map((row) => [...row.cells].filter((cell) => cell.offsetHeight).map((cell) => cell.innerText.trim()));
};
const csv = (rows) =>
  rows
    .map((row) => row.map((cell) => (/[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)).join(","))
    .join("\n");
const markdown = (rows) =>
  rows
    .map((row) => `| ${row.map((cell) => cell.replace(/\s*\n\s*/g, "; ").replace(/[\\|<>`*_[\]]/g, "\\$&")).join(" | ")} |`)
    .toSpliced(1, 0, `|${" --- |".repeat(rows[0].length)}`)
    .join("\n");
// A figure as it is seen: its texts and drawings at their places, with the styles that they have.
const kept = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity", "font", "text-anchor", "paint-order"];
function styled(from, to) {
  const style = getComputedStyle(from);
  for (const name of kept) to.style.setProperty(name, style.getPropertyValue(name));
  [...from.children].forEach((child, n) => styled(child, to.children[n]));
}
function drawing(svg, ground) {
  const copy = svg.cloneNode(true);
  const box = svg.getBoundingClientRect();
  styled(svg, copy);
  for (const [name, size] of [["x", box.x - ground.x], ["y", box.y - ground.y], ["width", box.width], ["height", box.height]]) {
    copy.setAttribute(name, size.toFixed(1));
  }
  copy.setAttribute("overflow", "visible");
  const uses = all("use", svg);
  all("use", copy).forEach((use, n) => {
    const used = document.querySelector(uses[n].getAttribute("href"));
    const group = document.createElementNS(copy.namespaceURI, "g");
    group.append(used.cloneNode(true));
    if (used.classList.contains("behind")) styled(used, group.firstChild);
    else group.setAttribute("style", use.getAttribute("style"));
    group.setAttribute("transform", `translate(${use.x.baseVal.value} ${use.y.baseVal.value})`);
    group.firstChild.removeAttribute("id");
    use.replaceWith(group);
  });
  return copy.outerHTML.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"');
}
function picture(figure) {
  const ground = figure.getBoundingClientRect();
  const parts = [];
  const texts = document.createTreeWalker(figure, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode;
    if (!node.data.trim() || node.parentElement.closest("svg, figcaption, button:not(thead button), .copies")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    if (!box.width) continue;
    const style = getComputedStyle(node.parentElement);
    const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
    text.setAttribute("x", (box.x - ground.x).toFixed(1));
    text.setAttribute("y", (box.bottom - ground.y - box.height * 0.25).toFixed(1));
    text.setAttribute("style", `font:${style.font};fill:${style.color}`);
    text.textContent = node.data.trim();
    parts.push(text.outerHTML);
  }
  for (const svg of all("svg", figure)) {
    if (svg.parentElement.closest("svg, figcaption") || !svg.getBoundingClientRect().width) continue;
    parts.push(drawing(svg, ground));
  }
  const size = `width="${ground.width.toFixed(0)}" height="${ground.height.toFixed(0)}"`;
  const paper = getComputedStyle(document.body).backgroundColor;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size}><rect width="100%" height="100%" fill="${paper}"/>${parts.join("")}</svg>`;
}
const offers = (table) => [
  ["Copy as CSV", () => csv(cells(table))],
  ["Copy as Markdown", () => markdown(cells(table))],
];
for (const table of all("table.paper, table.plain, table.matrix")) {
  if (!table.closest("figure")) copies(table.closest(".scroll"), offers(table));
}
for (const figure of all("figure[data-copy]")) {
  const table = figure.querySelector("table");
  copies(figure.lastElementChild, [["Copy as SVG", () => picture(figure)], ...(table ? offers(table) : [])]);
}
