// A click on a heading sorts its table.
for (const table of document.querySelectorAll("table.sort")) {
  table.querySelectorAll("th").forEach((th, column) => {
    const button = document.createElement("button");
    button.textContent = th.textContent;
    th.replaceChildren(button);
    let down = false;
    button.addEventListener("click", () => {
      down = !down;
      const value = row => {
        const cell = row.cells[column];
        return cell.dataset.v === undefined ? cell.textContent : parseFloat(cell.dataset.v);
      };
      const rows = [...table.tBodies[0].rows].sort((a, b) => {
        const x = value(a), y = value(b);
        return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
      });
      table.tBodies[0].append(...rows);
    });
  });
}
