// The page: which part is shown is in the address.
import { readAddress } from "./address.js";
import { make } from "./elements.js";
import { forecastPage } from "./forecast_page.js";
import { lessonsPage } from "./lessons_page.js";
import { runsPage } from "./runs_page.js";
import { ask } from "./server_calls.js";
import { startPage } from "./start_page.js";
import { studiesPage } from "./studies_page.js";
import { theoryPage } from "./theory_page.js";
import { verdictsPage } from "./verdicts_page.js";

const PAGES = {
  start: ["Start", startPage], runs: ["Runs", runsPage], forecast: ["Forecast", forecastPage], theory: ["Theory", theoryPage],
  studies: ["Studies", studiesPage], verdicts: ["Verdicts", verdictsPage], lessons: ["Lessons", lessonsPage],
};

async function begin() {
  const embedded = document.getElementById("embedded");
  const start = embedded ? JSON.parse(embedded.textContent) : await ask("/api/start");
  const main = document.getElementById("main");
  const nav = document.getElementById("pages");
  let open = null;

  function route() {
    const { page, query } = readAddress();
    const pages = start.pages ?? Object.keys(PAGES);
    const name = pages.includes(page) ? page : start.first ?? pages[0];
    open?.leave?.();
    nav.replaceChildren(...pages.map((one) => make("a", { href: `#${one}`, "aria-current": one === name ? "page" : null }, PAGES[one][0])));
    open = PAGES[name][1](main, page === "" && start.query ? new URLSearchParams(start.query) : query, start);
    document.title = `${PAGES[name][0]} · tiltmeter`;
  }

  document.getElementById("footer").textContent = `tiltmeter ${start.version}${start.folder ? ` · folder ${start.folder}` : ""}`;
  addEventListener("hashchange", route);
  route();
}

begin().catch((error) => document.getElementById("main").replaceChildren(make("p", { class: "refused" }, `The page could not start: ${error.message}`)));
