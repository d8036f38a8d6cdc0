// The page: which run, which part of it, and what comes in while it goes on.

import { Chart } from "./chart.js";
import { compareWith, compared, drawTotals, theirs } from "./compare.js";
import { byId, el, put } from "./dom.js";
import { drawDecisions, drawShadows, goTo } from "./events.js";
import { drawExecutors, drawNumbers, drawTiles } from "./figures.js";
import { day, moment, number, promised, seconds } from "./format.js";
import { drawGroups } from "./groups.js";
import { drawHosted } from "./hosted.js";
import { drawLanes } from "./lanes.js";
import { drawTopology } from "./topology.js";
import { explain, fold, isOpen } from "./why.js";

const MOST_POINTS = 2400;
const MOST_EVENTS = 2000;

let state = null; // what is known of the run that is shown
let runs = [];
let stream = null;
let component = "";
let span = { since: null, until: null, last: null }; // of time; `last` slides with a live run

const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) history.replaceState(null, "", location.pathname); // out of the address, into memory alone

const chosenSpan = (from, to) => { span = { since: from, until: to, last: null }; byId("range").value = "chosen"; load(); };
// The decision that held at a moment of a chart, opened among the decisions.
const chosenMoment = async (at) => {
  const made = state.decisions.filter((d) => d.at_s <= at + 1e-6).at(-1) ?? state.decisions[0];
  if (!made) return;
  if (!made.changes) byId("calm").checked = true;
  if (component) choose("");
  await unfold(made.at_s, true);
  goTo(made.at_s);
};
const chart = (id, options) => new Chart(byId(id), options, { onSpan: chosenSpan, onMoment: chosenMoment });
const another = { label: "the other run", look: "other" };
const charts = {
  rate: chart("chart-rate", { title: "Rows a second", format: number, lines: [
    { label: "arriving", look: "s1" }, { label: "foreseen", look: "s2 dashed" }, { label: "at most", look: "s2 dotted" }, another] }),
  latency: chart("chart-latency", { title: "Latency", format: seconds, bridge: true, lines: [
    { label: "mean", look: "s1" }, { label: "", look: "s2" }, { label: "worst", look: "s3 dotted" }, { label: "bound", look: "bound" },
    { label: "", look: "s2 dashed" }, { ...another }] }),
  lag: chart("chart-lag", { title: "Lag: rows waiting", format: number, lines: [{ label: "rows", look: "s1" }, another] }),
  executors: chart("chart-executors", { title: "Executors", format: number, step: true, lines: [
    { label: "there", look: "s1" }, { label: "busy", look: "s2" }, { label: "most allowed", look: "bound dashed" }, another] }),
  work: chart("chart-component-work", { title: "Processors in use", format: number, lines: [
    { label: "busy", look: "s1" }, { label: "given", look: "s2 dashed" }] }),
  cost: chart("chart-component-cost", { title: "Time for a row", format: seconds, lines: [{ label: "service", look: "s1" }] }),
};

async function ask(address) {
  const answer = await fetch(address);
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error);
  return body;
}

function trouble(sentence) {
  byId("trouble").hidden = !sentence;
  byId("trouble").textContent = sentence ?? "";
}

function status(word, look) {
  byId("status").textContent = word;
  byId("status").className = `pill ${look}`;
}

function fillRuns(found) {
  runs = found;
  const chosen = byId("run").value;
  put(byId("run"), runs.map((run) =>
    el("option", { value: run.id }, `${run.id}: ${run.topology}, ${run.policy}, ${day(run.started_at_s)}`)));
  if (runs.some((run) => String(run.id) === chosen)) byId("run").value = chosen;
  fillOthers();
}

function fillOthers() {
  const others = runs.filter((run) => String(run.id) !== byId("run").value);
  const chosen = String(compared()?.run.id ?? "");
  byId("compare").parentElement.hidden = others.length === 0;
  put(byId("compare"), el("option", { value: "" }, "none"), others.map((run) =>
    el("option", { value: run.id }, `${run.id}: ${run.topology}, ${run.policy}, ${day(run.started_at_s)}`)));
  byId("compare").value = others.some((run) => String(run.id) === chosen) ? chosen : "";
}

// One request when a person asks, kept with the decision until it is folded up.
async function unfold(at, open = !isOpen(state.run.id, at)) {
  try {
    if (open && !isOpen(state.run.id, at)) await explain(ask, state.run.id, at);
    if (!open) fold(state.run.id, at);
    trouble(null);
  } catch (error) {
    trouble(error.message);
  }
  draw();
}

async function start() {
  theme(localStorage.getItem("theme") ?? "auto");
  // A page that only some may read: from here on the browser sends along what no script can see.
  if (token) await fetch("/api/session", { method: "POST", headers: { Authorization: `Bearer ${token}` } });
  const { runs: found, acts, hosted } = await ask("/api/runs");
  fillRuns(found);
  if (hosted) { list(acts.includes("stop")); return; }
  byId("hold").hidden = !(token && acts.includes("advice-only"));
  if (runs.length === 0) { waitForRun(); return; }
  await load();
}

// What a host runs, pushed by the server whenever it changes.
function list(acting) {
  stream?.close();
  document.body.classList.add("listing");
  byId("hosted").hidden = false;
  byId("all").hidden = true;
  document.title = "Penstock";
  const act = async (does, name) => {
    try { await tell(does, { name }); trouble(null); } catch (error) { trouble(error.message); }
  };
  stream = new EventSource("/api/topologies");
  stream.addEventListener("topologies", (event) => {
    drawHosted(JSON.parse(event.data).communities, show, token && acting ? act : null);
    status("live", "live");
  });
  stream.addEventListener("error", () => status("connection lost, trying again", "lost"));
  byId("all").onclick = () => list(acting);
}

async function show(run) {
  document.body.classList.remove("listing");
  byId("hosted").hidden = true;
  byId("all").hidden = false;
  fillRuns((await ask("/api/runs")).runs);
  byId("run").value = String(run);
  fillOthers();
  await load();
}

async function tell(act, what) {
  const answer = await fetch(`/api/acts/${act}`, {
    method: "POST", headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" }, body: JSON.stringify(what),
  });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error);
  return told;
}

function waitForRun() {
  status("no run yet", "ended");
  stream = new EventSource("/api/events");
  stream.addEventListener("runs", (event) => {
    fillRuns(JSON.parse(event.data).runs);
    if (runs.length > 0) { stream.close(); load(); }
  });
}

async function load() {
  stream?.close();
  const run = byId("run").value;
  const query = new URLSearchParams();
  if (span.since !== null) query.set("since", span.since);
  if (span.until !== null) query.set("until", span.until);
  try {
    if (span.last !== null) {
      const newest = (state?.run.id === Number(run) ? state.series.at_s.at(-1) : null) ?? (await ask(`/api/runs/${run}`)).series.at_s.at(-1);
      if (newest !== undefined) query.set("since", newest - span.last);
    }
    state = await ask(`/api/runs/${run}?${query}`);
    trouble(null);
  } catch (error) {
    trouble(error.message);
    return;
  }
  fillComponents();
  draw();
  follow();
}

// New periods are pushed by the server; the browser reconnects by itself where it left off.
function follow() {
  const { run } = state;
  if (span.until !== null) { status("a past span", "ended"); return; }
  status(run.ended_at_s === null ? "live" : "ended", run.ended_at_s === null ? "live" : "ended");
  stream = new EventSource(`/api/runs/${run.id}/events?after=${state.position}`);
  stream.addEventListener("period", (event) => { add(JSON.parse(event.data)); });
  stream.addEventListener("runs", (event) => {
    fillRuns(JSON.parse(event.data).runs);
    state.run = runs.find((r) => r.id === state.run.id) ?? state.run;
    status(state.run.ended_at_s === null ? "live" : "ended", state.run.ended_at_s === null ? "live" : "ended");
  });
  stream.addEventListener("trouble", (event) => trouble(JSON.parse(event.data).error));
  stream.addEventListener("open", () => { trouble(null); if (state.run.ended_at_s === null) status("live", "live"); });
  stream.addEventListener("error", () => status("connection lost, trying again", "lost"));
}

function add(update) {
  const count = state.series.at_s.length;
  const fresh = update.series.at_s.length;
  for (const [name, values] of Object.entries(update.series)) state.series[name].push(...values);
  for (const [name, columns] of Object.entries(update.components)) {
    const kept = (state.components[name] ??= {});
    for (const [key, values] of Object.entries(columns)) (kept[key] ??= Array(count).fill(null)).push(...values);
  }
  for (const kept of Object.values(state.components))
    for (const values of Object.values(kept)) while (values.length < count + fresh) values.push(null);
  for (const name of ["decisions", "shadows", "others", "actions", "failures", "moves"])
    state[name] = [...state[name], ...update[name]].slice(-MOST_EVENTS);
  for (const [name, values] of Object.entries(update.forecast)) state.forecast[name].push(...values);
  for (const [policy, columns] of Object.entries(update.wanted)) {
    const kept = (state.wanted[policy] ??= { at_s: [], processors: [] });
    for (const [name, values] of Object.entries(columns)) kept[name].push(...values);
  }
  if (fresh > 0) { state.newest = update.newest; }
  state.run = update.run;
  state.periods.of += fresh;
  forget();
  fillComponents();
  draw();
}

function forget() {
  const times = state.series.at_s;
  let old = Math.max(0, times.length - MOST_POINTS);
  if (span.last !== null) while (times[old] < times.at(-1) - span.last) old += 1;
  if (old === 0) return;
  for (const values of Object.values(state.series)) values.splice(0, old);
  for (const kept of Object.values(state.wanted)) {
    let past = 0;
    while (kept.at_s[past] < times[0]) past += 1;
    for (const values of Object.values(kept)) values.splice(0, past);
  }
  let gone = 0;
  while (state.forecast.at_s[gone] < times[0]) gone += 1;
  for (const values of Object.values(state.forecast)) values.splice(0, gone);
  for (const kept of Object.values(state.components)) for (const values of Object.values(kept)) values.splice(0, old);
}

function fillComponents() {
  const names = Object.keys(state.components);
  if (!names.includes(component)) component = "";
  put(byId("component"), el("option", { value: "" }, "all"), names.map((name) => el("option", { value: name }, name)));
  byId("component").value = component;
}

function choose(name) {
  component = name;
  byId("component").value = name;
  draw();
}

function draw() {
  const { series, run, newest } = state;
  const marks = state.decisions.filter((d) => d.changes && d.processors !== d.guarded).map((d) => d.at_s);
  const mine = state.components[component];
  const times = series.at_s;
  const foreseen = (name) => ({ at_s: state.forecast.at_s, points: state.forecast[name] });
  charts.rate.draw(times, [mine ? mine.arrival_rate_per_s : series.arrival_rate_per_s, ...["rate_per_s", "upper_per_s"].map((name) => (mine ? null : foreseen(name))), mine ? null : theirs(run, "arrival_rate_per_s")], marks);
  drawLatency(times, foreseen("latency_s"), marks);
  charts.lag.draw(times, [mine && mine.backlog_rows.some((v) => v > 0) ? mine.backlog_rows : series.backlog_rows, mine ? null : theirs(run, "backlog_rows")], marks);
  charts.executors.draw(times, [series.executors, series.load.map((load, i) => (load === null ? null : load * series.executors[i])), run.executors_max, theirs(run, "executors")], marks);
  for (const id of ["chart-component-work", "chart-component-cost"]) byId(id).hidden = !mine;
  if (mine) {
    charts.work.draw(times, [mine.busy_processors, mine.parallelism], marks);
    charts.cost.draw(times, [mine.service_time_s], marks);
  }
  drawTiles(state);
  drawTopology(byId("topology").querySelector(".body"), run, newest, component, choose);
  drawExecutors(newest);
  drawLanes(newest);
  drawGroups(newest, state.moves, component);
  drawDecisions(state, component, byId("calm").checked, unfold);
  drawShadows(state, component);
  drawNumbers(state);
  const { shown, of } = state.periods;
  byId("shown").textContent = times.length === 0 ? "nothing was measured in this time"
    : `${moment(times[0])} to ${moment(times.at(-1))}${shown < of && shown >= 1200 ? `, ${number(shown)} of ${number(of)} periods, the worst of each few` : ""}`;
  document.title = `${run.topology}, Penstock`;
}

// The promise in the fewest lines: what its share kept, was foretold to keep, and must keep.
function drawLatency(times, foretold, marks) {
  const { series, run } = state;
  const [mine, other] = [promised(run), promised(compared()?.run ?? run)];
  const { lines } = charts.latency;
  for (const [line, label] of [[1, mine.name], [4, mine.expected], [5, `the other run, ${other.name}`]]) lines[line].label = label;
  charts.latency.draw(times, [series.latency_mean_s, series[mine.key], series.latency_max_s, run.max_latency_s, foretold, theirs(run, other.key)], marks);
}

async function showTotals() {
  drawTotals(state.run, compared() ? await ask(`/api/runs/${state.run.id}/totals`) : null);
}

function theme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  localStorage.setItem("theme", name);
  byId("theme").textContent = name;
  byId("theme").setAttribute("aria-label", `colours: ${name}`);
}

byId("theme").addEventListener("click", () => {
  const names = ["auto", "light", "dark"];
  theme(names[(names.indexOf(byId("theme").textContent) + 1) % names.length]);
});
byId("run").addEventListener("change", async () => {
  span = { since: null, until: null, last: null };
  byId("range").value = "";
  if (String(compared()?.run.id) === byId("run").value) await compareWith(ask, "");
  fillOthers();
  await load();
  await showTotals();
});
byId("compare").addEventListener("change", async (event) => {
  try { await compareWith(ask, event.target.value); trouble(null); } catch (error) { trouble(error.message); }
  draw();
  await showTotals();
});
byId("component").addEventListener("change", (event) => choose(event.target.value));
byId("calm").addEventListener("change", draw);
byId("range").addEventListener("change", (event) => {
  const value = event.target.value;
  byId("from").value = byId("to").value = "";
  // 0 as a beginning asks for all of a long run too, of which the end is shown at first.
  span = value === "" ? { since: 0, until: null, last: null } : { since: null, until: null, last: Number(value) };
  load();
});
byId("filter").addEventListener("submit", (event) => {
  event.preventDefault();
  const read = (id) => (byId(id).value === "" ? null : state.run.started_at_s + Number(byId(id).value));
  span = { since: read("from") ?? 0, until: read("to"), last: null };
  byId("range").value = "chosen";
  load();
});
byId("hold").addEventListener("click", async () => {
  const on = byId("hold").dataset.on !== "true";
  let told;
  try { told = await tell("advice-only", { on }); } catch (error) { trouble(error.message); return; }
  byId("hold").dataset.on = String(told.on);
  byId("hold").textContent = told.on ? "Let it act again" : "Pause acting";
});

start().catch((error) => trouble(error.message));
