// A line chart over time, in SVG. Drag to choose a span of time; point, or use the arrow keys, to
// read values; click, or press Enter, to go to the decision that held at that moment.

import { el, put, svg } from "./dom.js";
import { known, moment } from "./format.js";
import { save } from "./save.js";

const LEFT = 46, RIGHT = 8, TOP = 8, BOTTOM = 20, HEIGHT = 170;

export class Chart {
  constructor(place, { title, lines, format, step = false, bridge = false }, { onSpan, onMoment } = {}) {
    Object.assign(this, { place, title, lines, format, step, bridge, onSpan, onMoment });
    this.readout = el("div", { class: "readout", id: `${place.id}-values` });
    this.drawing = svg("svg", { class: "chart", role: "img", tabindex: 0, "aria-describedby": this.readout.id,
      "aria-label": `${title} over time. Arrow keys read values${onMoment ? ", Enter shows the decision of that moment" : ""}.` });
    this.keys = el("span", { class: "keys" });
    put(place, el("figcaption", {}, el("b", {}, title), this.keys, this.saves()), this.drawing, this.readout);
    this.listen();
    new ResizeObserver(() => this.redraw()).observe(place);
  }

  saves() {
    return el("span", { class: "saves" }, ...[["csv", "data"], ["svg", "picture"]].map(([form, what]) => {
      const button = el("button", { type: "button", class: "small", "data-form": form,
        "aria-label": `Save the ${what} of ${this.title} as ${form.toUpperCase()}` }, form.toUpperCase());
      button.addEventListener("click", () => save(this, form));
      return button;
    }));
  }

  listen() {
    const on = (name, does) => this.drawing.addEventListener(name, does);
    on("pointermove", (event) => this.point(event));
    on("pointerleave", () => this.leave());
    on("pointerdown", (event) => this.press(event));
    on("pointerup", (event) => this.release(event));
    on("click", (event) => { if (!this.dragged && this.times?.length) this.onMoment?.(this.where(event)); });
    on("keydown", (event) => this.key(event));
    // Spoken only while the keys are used: a live run would never be silent.
    on("focus", () => this.readout.setAttribute("aria-live", "polite"));
    on("blur", () => { this.readout.removeAttribute("aria-live"); this.leave(); });
  }

  key(event) {
    const last = (this.times?.length ?? 0) - 1;
    if (last < 0) return;
    const now = this.pointed === undefined ? last : Math.min(this.pointed, last);
    const far = Math.max(1, Math.round(last / 10));
    const steps = { ArrowLeft: now - 1, ArrowRight: now + 1, PageUp: now - far, PageDown: now + far, Home: 0, End: last };
    if (event.key === "Enter") this.onMoment?.(this.times[now]);
    else if (event.key in steps) this.show(Math.max(0, Math.min(last, steps[event.key])));
    else return;
    event.preventDefault();
  }

  // Only the lines that have something to show are in the key.
  drawKeys() {
    put(this.keys, this.lines.filter((_, i) => this.values[i] !== null && this.values[i] !== undefined).map((line) =>
      el("span", { class: "key" },
        svg("svg", { viewBox: "0 0 24 8", "aria-hidden": "true" },
          svg("line", { x1: 0, y1: 4, x2: 24, y2: 4, class: `line ${line.look}` })),
        line.label)));
  }

  // values: for each line an array, a number (a level line), null, or {at_s, points} with times of
  // its own; marks: moments of changes.
  draw(times, values, marks = []) {
    this.own = values.map((value) => (value?.at_s ? value.at_s : times));
    Object.assign(this, { times, values: values.map((value) => value?.points ?? value), marks });
    this.drawKeys();
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
    this.show(nearest(this.times, at));
    if (this.pressed !== undefined) {
      const [a, b] = [this.x(Math.min(this.pressed, at)), this.x(Math.max(this.pressed, at))];
      this.band.setAttribute("x", a);
      this.band.setAttribute("width", Math.max(0, b - a));
    }
  }

  show(i) {
    this.pointed = i;
    const x = this.x(this.times[i]);
    for (const [name, value] of [["x1", x], ["x2", x], ["visibility", "visible"]]) this.cursor.setAttribute(name, value);
    this.tell(i);
  }

  press(event) {
    this.dragged = false;
    if (event.pointerType === "touch" || !this.times?.length) return;
    this.pressed = this.where(event);
  }

  release(event) {
    const from = this.pressed;
    this.pressed = undefined;
    if (from === undefined) return;
    const to = this.where(event);
    this.band.setAttribute("width", 0);
    this.dragged = Math.abs(this.x(to) - this.x(from)) > 8;
    if (this.dragged) this.onSpan?.(Math.min(from, to), Math.max(from, to));
  }

  leave() {
    this.cursor?.setAttribute("visibility", "hidden");
    this.pressed = this.pointed = undefined;
    this.band?.setAttribute("width", 0);
    this.newest();
  }

  newest() {
    if (this.pointed !== undefined && this.pointed < this.times.length) this.show(this.pointed);
    else if (this.times?.length) this.tell(this.times.length - 1);
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
