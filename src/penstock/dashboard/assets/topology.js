// The graph of components, drawn from the run's edges and what the newest period says of each.

import { el, exact, put, svg } from "./dom.js";
import { number, seconds } from "./format.js";

export function drawTopology(place, run, newest, chosen, onChoose) {
  const components = newest?.components ?? [];
  const { nodes, edges } = grouped(run.edges ?? [], components);
  if (nodes.size === 0) {
    put(place, el("p", { class: "quiet" }, "No component was measured in this period."));
    return;
  }
  const graph = el("div", { class: "graph" });
  const drawn = new Map();
  for (const layer of layers([...nodes.keys()], edges)) {
    graph.append(el("div", { class: "layer" }, ...layer.map((name) => {
      const box = card(name, nodes.get(name), name === chosen, onChoose);
      drawn.set(name, box);
      return box;
    })));
  }
  put(place, graph);
  const join = () => connect(graph, drawn, edges);
  join();
  new ResizeObserver(join).observe(graph);
}

// Operators by the component that holds them; what no component holds is a source or a sink.
function grouped(raw, components) {
  const home = new Map();
  for (const component of components) {
    for (const operator of component.operators) home.set(operator, component.name);
    home.set(component.name, component.name);
  }
  const nodes = new Map(components.map((component) => [component.name, component]));
  const edges = new Map();
  for (const [upstream, downstream] of raw) {
    const [a, b] = [home.get(upstream) ?? upstream, home.get(downstream) ?? downstream];
    for (const name of [a, b]) if (!nodes.has(name)) nodes.set(name, null);
    if (a !== b) edges.set(JSON.stringify([a, b]), [a, b]);
  }
  return { nodes, edges: [...edges.values()] };
}

// Each node below all it is fed by; a loop stops pushing after as many rounds as there are nodes.
function layers(names, edges) {
  const depth = new Map(names.map((name) => [name, 0]));
  for (let round = 0; round < names.length; round += 1) {
    let moved = false;
    for (const [a, b] of edges) {
      if (depth.get(b) < depth.get(a) + 1 && depth.get(a) + 1 < names.length) {
        depth.set(b, depth.get(a) + 1);
        moved = true;
      }
    }
    if (!moved) break;
  }
  const found = [];
  for (const name of names) (found[depth.get(name)] ??= []).push(name);
  return found.filter(Boolean);
}

function card(name, component, isChosen, onChoose) {
  if (component === null) return el("div", { class: "node outer" }, name);
  const box = el("button", {
    type: "button", class: `node${isChosen ? " chosen-one" : ""}`, "aria-pressed": String(isChosen), "data-component": name,
  },
  el("b", {}, name),
  component.operators.length > 0 && component.operators.join() !== name
    ? el("span", {}, component.operators.join(" + "), el("br")) : null,
  el("span", { class: "quiet" },
    "processors ", exact(component.parallelism, number(component.parallelism)),
    component.tasks ? `, tasks ${component.tasks}` : "",
    ", ", exact(component.arrival_rate_per_s, `${number(component.arrival_rate_per_s)}/s`),
    ", ", exact(component.service_time_s, `${seconds(component.service_time_s)} a row`)));
  box.addEventListener("click", () => onChoose(isChosen ? "" : name));
  return box;
}

function connect(graph, drawn, edges) {
  graph.querySelector(":scope > svg")?.remove();
  const frame = graph.getBoundingClientRect();
  const paths = edges.map(([a, b]) => {
    const [from, to] = [drawn.get(a).getBoundingClientRect(), drawn.get(b).getBoundingClientRect()];
    const [x1, y1] = [from.left + from.width / 2 - frame.left, from.bottom - frame.top];
    const [x2, y2] = [to.left + to.width / 2 - frame.left, to.top - frame.top - 3];
    const bend = Math.max(12, Math.abs(y2 - y1) / 2);
    return svg("path", { d: `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`, "marker-end": "url(#tip)" });
  });
  const tip = svg("marker", { id: "tip", viewBox: "0 0 6 6", refX: 5, refY: 3, markerWidth: 7, markerHeight: 7, orient: "auto" },
    svg("path", { d: "M0 0L6 3L0 6z" }));
  graph.prepend(svg("svg", { "aria-hidden": "true" }, svg("defs", {}, tip), ...paths));
}
