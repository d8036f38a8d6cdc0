// The topologies of a host by community: their promises, and one click further the run of each.

import { byId, el, exact, put } from "./dom.js";
import { known, number, percent, seconds } from "./format.js";

const LOOKS = { running: "good", starting: "warn", failed: "bad" };
const HEADS = ["topology", "state", "promise", "in time", "results", "processors", "actions"];
const numbers = new Set(["in time", "results", "processors"]);

function promise(one) {
  if (!known(one.max_latency_s)) return "its own";
  return `${known(one.share) ? `${percent(one.share)} ` : ""}within ${seconds(one.max_latency_s)}`;
}

function row(one, open, act) {
  const name = known(one.run) ? el("button", { type: "button", class: "link" }, one.name) : el("span", {}, one.name);
  if (known(one.run)) name.addEventListener("click", () => open(one.run));
  const does = one.state === "running" || one.state === "starting" ? "stop" : "restart";
  const button = act && el("button", { type: "button", "aria-label": `${does} ${one.name}` }, does);
  button?.addEventListener("click", () => { button.disabled = true; act(does, one.name); });
  const late = one.missed_by ? el("div", { class: "quiet" }, `not kept beside the others: ${one.missed_by} expected`) : null;
  return el("tr", { "data-topology": one.name },
    el("th", { scope: "row" }, name, one.member ? el("div", { class: "quiet" }, `by ${one.member}`) : null),
    el("td", {}, el("span", { class: `badge ${LOOKS[one.state] ?? ""}` }, one.state), one.why),
    el("td", {}, promise(one), late),
    el("td", { class: "number" }, exact(one.in_time_share, percent(one.in_time_share))),
    el("td", { class: "number" }, exact(one.results, number(one.results))),
    el("td", { class: "number" }, known(one.processors) ? `${one.processors} of ${one.processors_wanted} wanted` : "–"),
    el("td", {}, button));
}

function community(found, open, act) {
  const quota = found.name ? `, ${found.least} to ${found.most ?? "all"} processors, weight ${number(found.weight)}` : "";
  return el("table", { "data-community": found.name },
    el("caption", {}, el("b", {}, found.name || "Without a community"), quota),
    el("thead", {}, el("tr", {}, HEADS.map((head) => el("th", { scope: "col", class: numbers.has(head) ? "number" : null }, head)))),
    el("tbody", {}, found.topologies.map((one) => row(one, open, act))));
}

export function drawHosted(communities, open, act) {
  const held = document.activeElement?.closest("[data-topology]")?.dataset.topology;
  const label = document.activeElement?.getAttribute("aria-label");
  put(byId("hosted").querySelector(".body"), communities.length === 0
    ? el("p", { class: "quiet" }, "No topology was submitted.") : communities.map((found) => community(found, open, act)));
  const again = [...document.querySelectorAll("[data-topology]")].find((one) => one.dataset.topology === held);
  [...(again?.querySelectorAll("button") ?? [])].find((one) => one.getAttribute("aria-label") === label)?.focus();
}
