// Lanes and the streams each reads, where the run has any.

import { byId, el, exact, put } from "./dom.js";
import { number } from "./format.js";

export function drawLanes(newest) {
  const sources = (newest?.sources ?? []).filter((source) => source.lanes.length > 0);
  byId("lanes").hidden = sources.length === 0;
  put(byId("lanes").querySelector(".body"), sources.flatMap(drawSource));
}

function drawSource(source) {
  const rows = source.lanes.map((lane) => el("tr", { "data-lane": lane.name },
    el("td", {}, lane.name),
    el("td", { class: "number" }, exact(lane.streams, number(lane.streams))),
    el("td", { class: "number" }, exact(lane.rate_per_s, `${number(lane.rate_per_s)}/s`)),
    el("td", { class: "number" }, exact(lane.queue_rows, number(lane.queue_rows)))));
  const heads = ["lane", "streams", "rate", "rows waiting"].map((name, i) => el("th", i > 0 ? { class: "number" } : {}, name));
  const counts = [`${number(source.live)} streams`,
    source.leaving > 0 ? `${number(source.leaving)} leaving` : null,
    source.suspended > 0 ? `${number(source.suspended)} suspended` : null,
    source.malformed_rows > 0 ? `${number(source.malformed_rows)} malformed rows` : null,
    `${number(source.redirected)} redirected since the start`].filter(Boolean);
  return [
    el("h3", {}, source.source), el("p", { class: "quiet" }, counts.join(", ")),
    el("table", {}, el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...rows)),
    ...source.notes.map((note) => el("p", { class: "quiet" }, note)),
  ];
}
