// Another run beside the one that is shown: its lines from the same start, and both runs' totals.

import { byId, el, exact, put } from "./dom.js";
import { number, percent, seconds } from "./format.js";

let other = null; // the document of the run that is compared with

export const compared = () => other;

export async function compareWith(ask, run) {
  other = run === "" ? null : { ...(await ask(`/api/runs/${run}?since=0`)), totals: await ask(`/api/runs/${run}/totals`) };
}

// A line of the other run, moved so that both begin at the same moment.
export function theirs(run, name) {
  if (!other) return null;
  const moved = run.started_at_s - other.run.started_at_s;
  return { at_s: other.series.at_s.map((at) => at + moved), points: other.series[name] };
}

const FIGURES = [
  ["in time", "in_time_share", percent], ["results", "results", number], ["mean latency", "latency_mean_s", seconds],
  ["worst latency", "latency_max_s", seconds], ["executor-hours", "executor_hours", (v) => number(v, 4)],
  ["executors at most", "executors_most", number], ["changes of executors", "changes", number], ["lasted", "duration_s", seconds],
];

export function drawTotals(run, totals) {
  const panel = byId("compared");
  panel.hidden = !other;
  if (!other) return;
  const name = (one) => `${one.id}: ${one.topology}, ${one.policy}`;
  put(panel.querySelector(".body"), el("table", {},
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "over all of a run"), ...[run, other.run].map((one) => el("th", { scope: "col", class: "number" }, name(one))))),
    el("tbody", {}, ...FIGURES.map(([label, field, format]) => el("tr", { "data-total": field },
      el("th", { scope: "row" }, label), ...[totals, other.totals].map((one) => el("td", { class: "number" }, exact(one[field], format(one[field])))))))));
}
