// Filters of the index of experiments; without this file it is a plain table.
document.addEventListener("DOMContentLoaded", () => {
  const part = document.querySelector(".evidence");
  if (!part) return;
  const [filters, search, paper, count] = [".filters", "input", "select", ".filters p"]
    .map((name) => part.querySelector(name));
  const groups = [...part.querySelectorAll(".chips")].map((group) => [...group.querySelectorAll("button")]);
  const rows = [...part.querySelectorAll("tbody tr")];
  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = groups
      .map((chips) => chips.filter((chip) => chip.ariaPressed === "true").map((chip) => chip.textContent))
      .concat([paper.value ? [paper.value] : []])
      .filter((names) => names.length);
    rows.forEach((row) => {
      const marks = row.dataset.marks.split("|");
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word))
        || !chosen.every((names) => names.some((name) => marks.includes(name)));
    });
    count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} experiments`;
  };
  groups.flat().forEach((chip) => chip.addEventListener("click", () => {
    chip.ariaPressed = chip.ariaPressed === "true" ? "false" : "true";
    show();
  }));
  [search, paper].forEach((field) => field.addEventListener("input", show));
  filters.hidden = false;
  show();
});
