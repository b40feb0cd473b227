// A button in every block of code copies it: of commands only the lines after "$ ", without it.
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div.highlight-python, div.highlight-console, div.highlight-sh, div.highlight-toml, div.highlight-bibtex")) {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "copy", textContent: "Copy" });
    button.addEventListener("click", async () => {
      const text = block.querySelector("pre").textContent;
      const commands = text.split("\n").filter((line) => line.startsWith("$ ")).map((line) => line.slice(2));
      try {
        await navigator.clipboard.writeText(block.matches(".highlight-console") ? commands.join("\n") : text);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(block.querySelector("pre"));
        button.textContent = "Selected";
      }
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    block.append(button);
  }
});
