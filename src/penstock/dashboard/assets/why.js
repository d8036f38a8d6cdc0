// Why not more, why not fewer: a decision seen again at other numbers of executors, on demand.

import { el } from "./dom.js";
import { known, number, seconds } from "./format.js";

const answers = new Map(); // by run and moment; kept open while new periods come in
const key = (run, at) => `${run}/${at}`;

export const isOpen = (run, at) => answers.has(key(run, at));

export async function explain(ask, run, at) {
  const answer = await ask(`/api/runs/${run}/why?at=${at}`);
  answers.set(key(run, at), answer);
}

export const fold = (run, at) => answers.delete(key(run, at));

export function explained(run, at) {
  const answer = answers.get(key(run, at));
  if (!answer) return null;
  const rows = answer.alternatives.map((one) => el("tr", { "data-executors": one.executors, class: one.chosen ? "chosen-row" : null },
    el("th", { scope: "row" }, number(one.executors), one.there ? " (there)" : "", one.chosen ? " (chosen)" : ""),
    el("td", { class: "number" }, known(one.latency_s) ? seconds(one.latency_s) : one.keeps_promise === false ? "pile up" : "–"),
    el("td", {}, one.goes_to === null ? "–" : one.goes_to === one.executors ? "stays" : `to ${number(one.goes_to)}`),
    el("td", {}, one.verdict)));
  const load = known(answer.planned_rate_per_s) ? ` at ${number(answer.planned_rate_per_s)} rows/s` : "";
  return el("div", { class: "why scroll", tabindex: 0, role: "group", "aria-label": "other numbers of executors" },
    el("table", {},
      el("caption", {}, `Why not fewer, why not more? ${number(answer.share * 100)}% of results within ${seconds(answer.max_latency_s)} are promised; foretold${load}.`),
      el("thead", {}, el("tr", {}, ...["executors", "results within", "from there", "why"].map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, ...rows)),
    ...answer.notes.map((note) => el("p", { class: "quiet" }, note)));
}
