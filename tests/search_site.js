// Asks the search of a built site, as its search page does: node search_site.js SITE QUERY... prints the pages found.
const fs = require("node:fs");
const vm = require("node:vm");

const [site, ...queries] = process.argv.slice(2);
const page = { childNodes: [], children: [], firstChild: null };
const context = vm.createContext({
  URLSearchParams,
  DOCUMENTATION_OPTIONS: {},
  SPHINX_HIGHLIGHT_ENABLED: false,
  location: { search: "" },
  localStorage: { setItem() {} },
  document: { addEventListener() {}, readyState: "loading", getElementById: () => page, documentElement: { dataset: {} } },
  _ready() {},
  _: (text) => text,
});
context.window = context;
for (const name of ["_static/language_data.js", "_static/searchtools.js", "searchindex.js"]) {
  vm.runInContext(fs.readFileSync(`${site}/${name}`, "utf8"), context);
}
const found = {};
for (const query of queries) {
  context.ask = query;
  // Sphinx lists results from the last to the first.
  found[query] = vm.runInContext("Search._performSearch(...Search._parseQuery(ask)).map((result) => result[0]).reverse()", context);
}
console.log(JSON.stringify(found));
