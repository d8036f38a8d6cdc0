// A chart as a file: its numbers, a row for each moment and empty where a line has none; or its picture.

import { el, svg } from "./dom.js";
import { known } from "./format.js";

const cell = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

export function csv({ lines, own, values }) {
  const shown = lines.map((line, k) => ({ line, times: own[k], points: values[k] }))
    .filter(({ points }) => points !== null && points !== undefined);
  const moments = [...new Set(shown.flatMap(({ times, points }) => (Array.isArray(points) ? times : [])))].sort((a, b) => a - b);
  const rows = new Map(moments.map((at) => [at, Array(shown.length).fill("")]));
  shown.forEach(({ times, points }, k) => {
    if (!Array.isArray(points)) for (const row of rows.values()) row[k] = known(points) ? String(points) : "";
    else points.forEach((value, i) => { if (known(value)) rows.get(times[i])[k] = String(value); });
  });
  const head = ["unix_s", "time", ...shown.map(({ line }) => cell(line.label))];
  return [head, ...[...rows].map(([at, row]) => [at, new Date(at * 1e3).toISOString(), ...row])].map((row) => row.join(",")).join("\n") + "\n";
}

// What the page's style sheet says of a part is written on the part: a file has no style sheet.
const LOOK = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "font-family", "font-size", "opacity", "visibility"];
const HEAD = 24; // above the chart, for its title and the key to its lines

function dressed(copy, shown) {
  const look = getComputedStyle(shown);
  for (const name of LOOK) copy.setAttribute(name, look.getPropertyValue(name));
  return copy;
}

export function picture({ title, drawing, keys, place }) {
  const { width, height } = drawing.viewBox.baseVal;
  const copy = drawing.cloneNode(true);
  const shown = drawing.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((part, i) => dressed(part, shown[i]));
  for (const name of ["class", "role", "tabindex", "aria-describedby"]) copy.removeAttribute(name);
  const words = { y: -8, "font-size": 12, "font-family": "sans-serif", fill: getComputedStyle(place).color };
  const left = keys.getBoundingClientRect().left;
  const key = [...keys.children].flatMap((one) => {
    const x = 130 + one.getBoundingClientRect().left - left;
    const line = one.querySelector("line");
    const moved = { x1: x, x2: x + 20, y1: -12, y2: -12 };
    return [dressed(svg("line", moved), line), svg("text", { ...words, x: x + 25 }, one.textContent)];
  });
  copy.prepend(svg("rect", { y: -HEAD, width, height: height + HEAD, fill: getComputedStyle(place).backgroundColor }),
    svg("text", { ...words, x: 4, "font-weight": "bold" }, title), ...key);
  for (const [name, value] of [["width", width], ["height", height + HEAD], ["viewBox", `0 ${-HEAD} ${width} ${height + HEAD}`]]) copy.setAttribute(name, value);
  return new XMLSerializer().serializeToString(copy);
}

const FORMS = { csv: ["text/csv", csv], svg: ["image/svg+xml", picture] };

export function save(chart, form) {
  if (!chart.times) return;
  const [type, written] = FORMS[form];
  const address = URL.createObjectURL(new Blob([written(chart)], { type }));
  const name = chart.title.toLowerCase().replaceAll(/[^a-z]+/g, "-");
  el("a", { href: address, download: `penstock-${name}.${form}` }).click();
  URL.revokeObjectURL(address);
}
