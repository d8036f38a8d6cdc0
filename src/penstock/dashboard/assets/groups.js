// Key groups as a heat map: a row for each node, a cell for each group it holds.

import { byId, el, exact, put } from "./dom.js";
import { bytes, known, moment, number, seconds } from "./format.js";

const SHADES = 7;
const MOVES_SHOWN = 8;

export function drawGroups(newest, moves, chosen) {
  const panel = byId("groups");
  const held = [...(newest?.components ?? []), ...(newest?.state ?? [])].filter((c) => c.key_groups && (!chosen || c.name === chosen));
  panel.hidden = held.length === 0;
  if (panel.hidden) return;
  put(panel.querySelector(".body"), held.flatMap((component) => heatMap(component, newest, moves)), legend());
}

function heatMap(component, newest, moves) {
  const { load_s: loads, state_bytes: sizes, node: homes } = component.key_groups;
  const most = Math.max(1e-9, ...loads.filter(known));
  const mine = moves.filter((move) => move.component === component.name);
  const fresh = new Map(mine.filter((move) => move.at_s === newest.at_s).map((move) => [move.group, move]));
  const byNode = new Map(newest.nodes.map((node) => [node.name, []]));
  homes.forEach((home, group) => {
    if (!byNode.has(home)) byNode.set(home, []);
    byNode.get(home).push(group);
  });
  const rows = [...byNode].map(([node, groups]) => {
    const load = groups.map((group) => loads[group]).filter(known).reduce((a, b) => a + b, 0);
    return el("tr", { "data-node": node },
      el("th", { scope: "row" }, node === "" ? "not known" : node),
      el("td", { class: "number" }, exact(load, seconds(load))),
      el("td", {}, el("div", { class: "cells" }, ...groups.map((group) => {
        const shade = known(loads[group]) ? Math.min(SHADES - 1, Math.floor((loads[group] / most) * SHADES)) : 0;
        const move = fresh.get(group);
        const told = `group ${group}: ${seconds(loads[group])} of work, state ${bytes(sizes[group])}${move ? `, moved from ${move.from}` : ""}`;
        return el("span", { class: `cell h${shade}${move ? " moved" : ""}`, title: told, "aria-label": told, "data-load": loads[group] }, group);
      }))));
  });
  const told = mine.slice(-MOVES_SHOWN).reverse().map((move) =>
    el("li", {}, `${moment(move.at_s)} group ${move.group}: ${move.from} → ${move.to}`));
  return [
    el("h3", {}, `${component.name}: ${loads.length} groups, the busiest ${number(most / (sum(loads) / loads.length || 1))} times the mean`),
    el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "node"), el("th", { class: "number" }, "work"), el("th", {}, "groups"))),
      el("tbody", {}, ...rows)),
    told.length > 0 ? el("p", { class: "quiet" }, "found on another node than before:") : null,
    told.length > 0 ? el("ul", { class: "moves" }, ...told) : null,
  ];
}

const sum = (values) => values.filter(known).reduce((a, b) => a + b, 0);

function legend() {
  return el("p", { class: "quiet" }, "less work", el("span", { class: "scale", "aria-hidden": "true" },
    ...Array.from({ length: SHADES }, (_, i) => el("i", { class: `h${i}` }))), "more; framed: moved in the newest period");
}
