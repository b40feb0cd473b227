// What the search lists first: pages for a start or a task, then all others, then the long pages of names and verdicts.
var Scorer = {
  score: ([page, title, anchor, description, score]) =>
    /^(start|tutorials)(\/|$)/.test(page) ? score + 20
    : /^howto\//.test(page) ? score + 19
    : /^(api(\/|$)|lab\/)/.test(page) ? score - 20
    : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
