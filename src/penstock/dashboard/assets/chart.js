// A line chart over time, in SVG. Drag to choose a span of time; point to read the values.

import { el, put, svg } from "./dom.js";
import { known, moment } from "./format.js";

const LEFT = 46, RIGHT = 8, TOP = 8, BOTTOM = 20, HEIGHT = 170;

export class Chart {
  constructor(place, { title, lines, format, step = false, bridge = false }, onSpan) {
    Object.assign(this, { place, title, lines, format, step, bridge, onSpan });
    this.readout = el("div", { class: "readout" });
    this.drawing = svg("svg", { class: "chart", role: "img", "aria-label": title });
    put(place, this.caption(), this.drawing, this.readout);
    this.drawing.addEventListener("pointermove", (event) => this.point(event));
    this.drawing.addEventListener("pointerleave", () => this.leave());
    this.drawing.addEventListener("pointerdown", (event) => this.press(event));
    this.drawing.addEventListener("pointerup", (event) => this.release(event));
    new ResizeObserver(() => this.redraw()).observe(place);
  }

  caption() {
    const keys = this.lines.map((line) =>
      el("span", { class: "key" },
        svg("svg", { viewBox: "0 0 24 8", "aria-hidden": "true" },
          svg("line", { x1: 0, y1: 4, x2: 24, y2: 4, class: `line ${line.look}` })),
        line.label));
    return el("figcaption", {}, el("b", {}, this.title), ...keys);
  }

  // values: for each line an array, a number (a level line), null, or {at_s, points} with times of
  // its own; marks: moments of changes.
  draw(times, values, marks = []) {
    this.own = values.map((value) => (value?.at_s ? value.at_s : times));
    Object.assign(this, { times, values: values.map((value) => value?.points ?? value), marks });
    this.redraw();
  }

  redraw() {
    if (!this.times || this.place.hidden) return;
    const width = Math.max(200, this.drawing.clientWidth || 600);
    const height = this.drawing.clientHeight || HEIGHT;
    this.drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const numbers = this.values.flatMap((value) => (Array.isArray(value) ? value : [value])).filter(known);
    const ticks = niceTicks(Math.max(1e-9, ...numbers), 4);
    const top = ticks[ticks.length - 1];
    const first = this.times[0] ?? 0;
    const last = Math.max(this.times.at(-1) ?? 1, ...this.own.map((times) => times.at(-1) ?? 0));
    const span = last - first || 1;
    this.x = (at) => LEFT + ((at - first) / span) * (width - LEFT - RIGHT);
    this.y = (value) => height - BOTTOM - (value / top) * (height - TOP - BOTTOM);
    this.at = (x) => first + ((x - LEFT) / (width - LEFT - RIGHT)) * span;
    this.cursor = svg("line", { class: "cursor", y1: TOP, y2: height - BOTTOM, visibility: "hidden" });
    this.band = svg("rect", { class: "chosen", y: TOP, height: height - TOP - BOTTOM, width: 0 });
    put(this.drawing, this.axes(ticks, first, span, width, height), this.marksDrawn(height),
      this.lines.flatMap((line, i) => this.lineDrawn(line, this.values[i], this.own[i], width)), this.band, this.cursor);
    this.newest();
  }

  axes(ticks, first, span, width, height) {
    const across = ticks.flatMap((tick) => [
      svg("line", { class: "gridline", x1: LEFT, x2: width - RIGHT, y1: this.y(tick), y2: this.y(tick) }),
      svg("text", { x: LEFT - 6, y: this.y(tick) + 4, "text-anchor": "end" }, this.format(tick)),
    ]);
    const count = Math.max(2, Math.floor(width / 130));
    const along = Array.from({ length: count }, (_, i) => first + (span * i) / (count - 1)).map((at, i) =>
      svg("text", { x: this.x(at), y: height - 5, "text-anchor": i === 0 ? "start" : i === count - 1 ? "end" : "middle" },
        moment(at, span < 1800)));
    return [...across, ...along];
  }

  marksDrawn(height) {
    return this.marks.filter((at) => at >= this.times[0])
      .map((at) => svg("line", { class: "change", x1: this.x(at), x2: this.x(at), y1: TOP, y2: height - BOTTOM }));
  }

  lineDrawn(line, value, times, width) {
    if (!Array.isArray(value)) {
      if (!known(value)) return [];
      return [svg("line", { class: `line ${line.look}`, x1: LEFT, x2: width - RIGHT, y1: this.y(value), y2: this.y(value) })];
    }
    const parts = [];
    let points = "";
    const dots = [];
    value.forEach((v, i) => {
      if (!known(v) || times[i] < this.times[0]) { if (!this.bridge) points = ""; return; }
      const [x, y] = [this.x(times[i]).toFixed(1), this.y(v).toFixed(1)];
      if (points === "") { points = `M${x} ${y}`; parts.push(points); }
      else { points += this.step ? `H${x}V${y}` : `L${x} ${y}`; parts[parts.length - 1] = points; }
      const alone = value.length === 1 || (!this.bridge && !known(value[i - 1]) && !known(value[i + 1]));
      if (alone) dots.push(svg("circle", { class: `dot ${line.look}`, cx: x, cy: y, r: 2 }));
    });
    return [...parts.map((d) => svg("path", { class: `line ${line.look}`, d })), ...dots];
  }

  where(event) {
    const box = this.drawing.getBoundingClientRect();
    return this.at(event.clientX - box.left);
  }

  point(event) {
    if (!this.times?.length) return;
    const at = this.where(event);
    const i = nearest(this.times, at);
    const x = this.x(this.times[i]);
    for (const [name, value] of [["x1", x], ["x2", x], ["visibility", "visible"]]) this.cursor.setAttribute(name, value);
    this.tell(i);
    if (this.pressed !== undefined) {
      const [a, b] = [this.x(Math.min(this.pressed, at)), this.x(Math.max(this.pressed, at))];
      this.band.setAttribute("x", a);
      this.band.setAttribute("width", Math.max(0, b - a));
    }
  }

  press(event) {
    if (event.pointerType === "touch" || !this.times?.length) return;
    this.pressed = this.where(event);
  }

  release(event) {
    const from = this.pressed;
    this.pressed = undefined;
    if (from === undefined) return;
    const to = this.where(event);
    this.band.setAttribute("width", 0);
    if (Math.abs(this.x(to) - this.x(from)) > 8) this.onSpan?.(Math.min(from, to), Math.max(from, to));
  }

  leave() {
    this.cursor?.setAttribute("visibility", "hidden");
    this.pressed = undefined;
    this.band?.setAttribute("width", 0);
    this.newest();
  }

  newest() {
    if (this.times?.length) this.tell(this.times.length - 1);
    else this.readout.textContent = "nothing yet";
  }

  // The place in a line's own times that is nearest to a place in the common ones.
  near(k, i) {
    if (this.own[k] === this.times) return i;
    return nearest(this.own[k], this.times[i]);
  }

  tell(i) {
    const told = this.lines.map((line, k) => {
      const value = Array.isArray(this.values[k]) ? this.values[k][this.near(k, i)] : this.values[k];
      return value === null || value === undefined ? null : `${line.label} ${this.format(value)}`;
    }).filter(Boolean);
    this.readout.textContent = `${moment(this.times[i])}  ${told.join(", ")}`;
  }
}

function nearest(times, at) {
  let found = 0;
  times.forEach((t, i) => { if (Math.abs(t - at) < Math.abs(times[found] - at)) found = i; });
  return found;
}

export function niceTicks(top, count) {
  const rough = top / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999) ?? power * 10;
  return Array.from({ length: Math.ceil(top / step - 1e-9) + 1 }, (_, i) => i * step);
}
