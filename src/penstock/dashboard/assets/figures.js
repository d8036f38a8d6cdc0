// The newest figures as tiles, the executors with their load, the lanes, and the table of numbers.

import { byId, el, exact, put, svg } from "./dom.js";
import { known, moment, number, percent, promised, seconds } from "./format.js";

const PERIODS_LISTED = 60;

export function drawTiles(state) {
  const { newest, run } = state;
  const last = (name) => state.series[name].at(-1) ?? null;
  // In a period in which no batch ended there is no latency: the last one that was known is shown.
  const quantile = promised(run);
  const when = state.series[quantile.key].findLastIndex(known);
  const latency = (name) => (when < 0 ? null : state.series[name][when]);
  const since = when >= 0 && when < state.series.at_s.length - 1 ? `, at ${moment(state.series.at_s[when])}` : "";
  const kept = latency(quantile.key);
  // By the share where it is known: sinks may have bounds of their own, which the quantile of all rows does not see.
  const inTime = latency("in_time_share");
  const late = known(run.share) && known(inTime) ? inTime < run.share : kept > run.max_latency_s;
  const tiles = [
    ["arriving", "rate", last("arrival_rate_per_s"), (v) => `${number(v)}/s`, ""],
    ["foreseen", "forecast", state.forecast.rate_per_s.at(-1) ?? null, (v) => `${number(v)}/s`, `in ${seconds(run.foresight_s)}`],
    [`latency, ${quantile.name}`, "quantile", kept, seconds, `bound ${seconds(run.max_latency_s)}${since}`,
      known(kept) ? (late ? " late" : " kept") : ""],
    ["in time", "in-time", inTime, percent, `mean ${seconds(latency("latency_mean_s"))}${since}`],
    ["lag", "lag", last("backlog_rows"), (v) => `${number(v)} rows`, lagTime(last("backlog_rows"), last("arrival_rate_per_s"))],
    ["executors", "executors", last("executors"), number, `${run.executors_min} to ${run.executors_max}, ${number(last("processors"))} processors`],
    ["load", "load", last("load"), percent, "of all processors"],
  ];
  put(byId("tiles"), tiles.map(([name, key, value, format, more, look]) =>
    el("div", { class: `tile${look ?? ""}`, "data-figure": key },
      el("div", { class: "name" }, name), el("div", { class: "value" }, exact(value, format(value))),
      el("div", { class: "more" }, more))));
  if (newest?.missing?.length > 0) byId("tiles").append(el("div", { class: "tile" },
    el("div", { class: "name" }, "not measured"), el("div", { class: "more" }, newest.missing.join("; "))));
}

const lagTime = (rows, rate) => (known(rows) && rate > 0 ? `${seconds(rows / rate)} of arrivals` : "");

function bar(share) {
  const part = known(share) ? Math.max(0, Math.min(1, share)) : 0;
  return svg("svg", { class: "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "full", width: 100, height: 8 }), svg("rect", { class: `part${part > 0.9 ? " hot" : ""}`, width: part * 100, height: 8 }));
}

export function drawExecutors(newest) {
  const nodes = newest?.nodes ?? [];
  const rows = nodes.map((node) => {
    const share = known(node.busy_s) ? node.busy_s / (node.slots * newest.period_s) : null;
    return el("tr", { "data-executor": node.name },
      el("td", {}, node.name, node.draining ? el("span", { class: "badge warn" }, "leaving") : null),
      el("td", { class: "number" }, exact(node.slots, number(node.slots))),
      el("td", {}, bar(share)), el("td", { class: "number" }, exact(share, percent(share))));
  });
  put(byId("executors").querySelector(".body"), rows.length === 0
    ? el("p", { class: "quiet" }, "No executor was seen in this period.")
    : el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "executor"), el("th", { class: "number" }, "slots"),
      el("th", { colspan: 2 }, "load"))), el("tbody", {}, ...rows)));
}

const columns = ({ key, name }) => [
  ["rate /s", "arrival_rate_per_s"], ["lag rows", "backlog_rows"],
  ["mean s", "latency_mean_s"], [`${name} s`, key], ["worst s", "latency_max_s"], ["in time", "in_time_share"],
  ["executors", "executors"], ["processors", "processors"], ["load", "load"], ["batch s", "batch_duration_s"], ["overhead s", "batch_overhead_s"],
];

export function drawNumbers(state) {
  const times = state.series.at_s;
  const listed = times.map((_, i) => i).slice(-PERIODS_LISTED).reverse();
  const shown = columns(promised(state.run));
  put(byId("numbers").querySelector(".body"), el("table", {},
    el("thead", {}, el("tr", {}, el("th", {}, "time"), ...shown.map(([name]) => el("th", { class: "number" }, name)))),
    el("tbody", {}, ...listed.map((i) => el("tr", { "data-at": times[i] },
      el("td", {}, moment(times[i])),
      ...shown.map(([, key]) => el("td", { class: "number", "data-key": key }, exact(state.series[key][i], number(state.series[key][i], 4)))))))));
}
