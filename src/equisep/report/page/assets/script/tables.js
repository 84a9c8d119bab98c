/* Tables that can be sorted and copied, and commands that can be copied. */

const ASIDE = 2500; // milliseconds that "Copied" stands

/** One cell as its column is sorted: numbers as numbers, what is missing always last. */
function cellValue(row, column, kind) {
  const value = row.cells[column].dataset.value ?? row.cells[column].textContent;
  return kind === "number" && value !== "" ? Number(value) : value;
}

/** Order the rows by a column; rows that are equal there stay as they were. */
function sortRows(table, column, kind, rising) {
  const body = table.tBodies[0];
  const sign = rising ? 1 : -1;
  const keyed = Array.from(body.rows, (row) => ({ row, value: cellValue(row, column, kind) }));
  keyed.sort(({ value: one }, { value: other }) => {
    if (one === "" || other === "") return (one === "") - (other === "");
    return sign * (kind === "number" ? one - other : String(one).localeCompare(String(other), undefined, { numeric: true }));
  });
  body.append(...keyed.map(({ row }) => row));
}

/** Put a button into each head: first rising, then falling. */
function makeSortable(table) {
  const heads = Array.from(table.tHead.rows[table.tHead.rows.length - 1].cells);
  for (const [column, head] of heads.entries()) {
    const kind = head.dataset.sort;
    if (!kind) continue;
    const button = element("button", { type: "button", class: "sort" }, ...head.childNodes);
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const rising = head.getAttribute("aria-sort") !== "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", rising ? "ascending" : "descending");
      sortRows(table, column, kind, rising);
    });
  }
}

/**
 * A field of a CSV file: quoted where a comma, a quote or a line end would break it. A name that a spreadsheet would compute,
 * as `=1+1`, has an apostrophe before it, which makes it text there; a number keeps its sign.
 */
function csvField(field) {
  const text = /^[=+\-@\t\r]/.test(field) && Number.isNaN(Number(field)) ? `'${field}` : field;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The table as CSV with every digit, in the order shown. */
function tableCsv(table) {
  const heads = Array.from(table.tHead.rows[table.tHead.rows.length - 1].cells, (head) => head.dataset.name ?? head.textContent.trim());
  const rows = Array.from(table.tBodies[0].rows, (row) => Array.from(row.cells, (cell) => cell.dataset.value ?? cell.textContent.trim()));
  return [heads, ...rows].map((fields) => fields.map(csvField).join(",")).join("\n");
}

/** Copy a text; where the browser refuses, show it selected, ready for the keyboard. */
async function copyText(text, beside) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = element("textarea", { class: "copied", readonly: true, rows: 4, "aria-label": "Text to copy" });
    area.value = text;
    beside.after(area);
    area.select();
    area.addEventListener("blur", () => area.remove());
    return false;
  }
}

/** A button that copies what `text()` gives, and says so. */
function copyButton(label, text) {
  const button = element("button", { type: "button", class: "copy" }, label);
  const said = element("span", { class: "said", role: "status" });
  button.addEventListener("click", async () => {
    said.textContent = (await copyText(text(), said)) ? "Copied" : "Selected: press Ctrl+C or ⌘C";
    setTimeout(() => (said.textContent = ""), ASIDE);
  });
  return [button, said];
}

/** Every table and every command of the page. */
function serveTables() {
  for (const table of document.querySelectorAll("table.sortable")) {
    makeSortable(table);
    const box = table.closest(".scroll") ?? table;
    const controls = box.previousElementSibling;
    if (controls?.classList.contains("controls")) controls.append(...copyButton("Copy as CSV", () => tableCsv(table)));
  }
  for (const command of document.querySelectorAll("pre.command")) {
    command.after(element("div", { class: "controls" }, ...copyButton("Copy the command", () => command.textContent.trim())));
  }
}
