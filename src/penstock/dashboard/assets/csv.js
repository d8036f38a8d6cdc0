// The numbers of a chart as a file: a row for each moment, empty where a line has none.

import { el } from "./dom.js";
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

export function saveCsv(chart) {
  if (!chart.times) return;
  const address = URL.createObjectURL(new Blob([csv(chart)], { type: "text/csv" }));
  const name = chart.title.toLowerCase().replaceAll(/[^a-z]+/g, "-");
  el("a", { href: address, download: `penstock-${name}.csv` }).click();
  URL.revokeObjectURL(address);
}
