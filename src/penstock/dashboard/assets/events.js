// Decisions with their numbers and reasons, what was done, what failed, and what shadows would do.

import { Chart } from "./chart.js";
import { byId, el, put } from "./dom.js";
import { moment, number, seconds } from "./format.js";
import { explained, isOpen } from "./why.js";

const MOST_SHOWN = 300;

export function drawDecisions(state, chosen, calmToo, unfold) {
  const run = state.run.id;
  const held = document.activeElement?.dataset?.why; // the button that was pressed keeps the focus
  const shown = state.decisions.filter((d) => (calmToo || d.changes) && concerns(d, chosen));
  const events = [
    ...shown.map((d) => [d.at_s, 0, decision(d, whyOf(run, d.at_s, unfold))]),
    ...state.others.filter((o) => !chosen || o.components.includes(chosen)).map((o) => [o.at_s, 0, other(o)]),
    ...state.actions.map((a) => [a.at_s, 1, action(a)]),
    ...state.failures.map((f) => [f.at_s, 2, failure(f)]),
  ].sort((a, b) => b[0] - a[0] || b[1] - a[1]);
  put(byId("decisions").querySelector(".body"), events.length > 0
    ? el("ol", { class: "events", tabindex: 0, "aria-label": "decisions, newest first" }, ...events.slice(0, MOST_SHOWN).map(([, , item]) => item))
    : el("p", { class: "quiet" }, "Nothing was changed in this time."));
  if (held) byId("decisions").querySelector(`[data-why="${held}"]`)?.focus();
}

function whyOf(run, at, unfold) {
  const open = isOpen(run, at);
  const button = el("button", { type: "button", class: "small", "data-why": at, "aria-expanded": String(open),
    "aria-label": `why not more or fewer executors at ${moment(at)}?` }, "why not more or fewer?");
  button.addEventListener("click", () => unfold(at));
  return [button, explained(run, at)];
}

export function goTo(at) {
  const found = byId("decisions").querySelector(`li[data-at="${at}"]`);
  found?.scrollIntoView({ block: "center" });
  found?.focus({ preventScroll: true });
}

export function drawShadows(state, chosen) {
  const panel = byId("shadows");
  panel.hidden = Object.keys(state.wanted).length === 0;
  if (panel.hidden) return;
  const shown = state.shadows.filter((d) => d.changes && concerns(d, chosen)).slice(-MOST_SHOWN).reverse();
  const names = Object.keys(state.wanted);
  drawWanted(state, names);
  put(panel.querySelector(".body"),
    el("p", { class: "quiet" }, `${names.join(", ")} decide on what is measured and never act.`),
    el("ol", { class: "events", tabindex: 0, "aria-label": "what other policies would have done, newest first" }, ...shown.map((d) => decision(d))));
}

const LOOKS = ["s2", "s3", "s2 dashed", "s3 dashed", "s2 dotted", "s3 dotted"];
let wanted = null; // the chart, and the policies it was made for

// From where the cluster was at each moment: what each policy would have had next.
function drawWanted(state, names) {
  const key = names.join();
  if (wanted?.key !== key) {
    const lines = [{ label: "there", look: "s1" }, ...names.map((label, i) => ({ label, look: LOOKS[i % LOOKS.length] }))];
    wanted = { key, chart: new Chart(byId("chart-shadows"), { title: "Processors", format: number, step: true, lines }) };
  }
  const columns = names.map((name) => ({ at_s: state.wanted[name].at_s, points: state.wanted[name].processors }));
  wanted.chart.draw(state.series.at_s, [state.series.processors, ...columns]);
}

// A decision concerns a component if it gives it other processors, or speaks of it.
function concerns(decided, chosen) {
  if (!chosen) return true;
  const change = decided.parallelism[chosen];
  const said = [...decided.reasons, ...decided.guard_reasons].some((reason) => reason.includes(chosen));
  return said || (change !== undefined && change.now !== change.wanted);
}

function decision(d, more = []) {
  const what = d.processors === d.guarded ? `processors stay ${d.processors}` : `processors ${d.processors} → ${d.guarded}`;
  const moved = Object.entries(d.parallelism).filter(([, p]) => p.now !== p.wanted)
    .map(([name, p]) => `${name}: ${p.now ?? "–"} → ${p.wanted ?? "–"}`);
  return el("li", { "data-kind": d.shadow ? "shadow" : "decision", "data-at": d.at_s, tabindex: -1 },
    el("time", {}, moment(d.at_s)), el("span", { class: "what" }, d.shadow ? `would: ${what}` : what),
    el("span", { class: "badge" }, d.policy),
    d.dry_run ? el("span", { class: "badge warn" }, "dry run") : null,
    d.suggested !== d.guarded ? el("span", { class: "badge warn" }, `suggested ${number(d.suggested)}`) : null,
    d.infeasible ? el("span", { class: "badge bad" }, "cannot be met") : null,
    el("ul", {}, ...d.reasons.map((r) => el("li", {}, r)), ...d.guard_reasons.map((r) => el("li", {}, r)),
      d.infeasible ? el("li", {}, d.infeasible) : null, moved.length > 0 ? el("li", {}, moved.join(", ")) : null), ...more);
}

// A decision of another kind than scaling: numbers are pairs of now and planned, or one alone.
function other(o) {
  const numbers = Object.entries(o.numbers)
    .map(([name, values]) => [name, values.filter((v) => v !== null)])
    .filter(([, values]) => values.length > 0)
    .map(([name, values]) => `${name} ${values.map((v) => number(v)).join(" → ")}`);
  return el("li", { "data-kind": o.kind },
    el("time", {}, moment(o.at_s)), el("span", { class: "what" }, o.what),
    el("span", { class: "badge" }, o.policy), o.dry_run ? el("span", { class: "badge warn" }, "dry run") : null,
    o.infeasible ? el("span", { class: "badge bad" }, "cannot be met") : null,
    el("ul", {}, numbers.length > 0 ? el("li", {}, numbers.join(", ")) : null, ...o.reasons.map((r) => el("li", {}, r)),
      o.infeasible ? el("li", {}, o.infeasible) : null));
}

function action(a) {
  return el("li", { "data-kind": "action" },
    el("time", {}, moment(a.at_s)), el("span", { class: "what" }, a.what),
    el("span", { class: a.done ? "badge good" : "badge bad" }, a.done ? "done" : "not done"),
    el("span", { class: "quiet" }, `${seconds(a.took_s)}, ${a.detail}`));
}

function failure(f) {
  return el("li", { "data-kind": "failure" },
    el("time", {}, moment(f.at_s)), el("span", { class: "badge bad" }, "failed"),
    el("span", { class: "what" }, f.stage), el("span", { class: "quiet" }, f.message));
}
