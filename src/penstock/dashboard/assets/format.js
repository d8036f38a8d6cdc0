// Numbers and times for people.

export const known = (value) => typeof value === "number" && Number.isFinite(value);

export function number(value, digits = 3) {
  if (!known(value)) return "–";
  if (value !== 0 && Math.abs(value) < 1e-3) return value.toExponential(1);
  if (Math.abs(value) >= 1e6) return value.toLocaleString("en", { notation: "compact", maximumSignificantDigits: digits });
  return value.toLocaleString("en", Math.abs(value) >= 1000 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: digits });
}

export function seconds(value) {
  if (!known(value)) return "–";
  if (value !== 0 && Math.abs(value) < 1) return `${number(value * 1e3)} ms`;
  return `${number(value)} s`;
}

export const percent = (value) => (known(value) ? `${(value * 100).toFixed(value > 0.995 && value < 1 ? 2 : 1)}%` : "–");

// The measured quantile that a run's promise is about: its column, and what it and its forecast are
// called. Of runs that were recorded before it was measured, the 95th percentile stands for it.
export function promised(run) {
  if (!known(run.share)) return { key: "latency_p95_s", name: "95%", expected: "expected" };
  const name = `${number(run.share * 100, 6)}%`;
  return { key: "latency_share_s", name, expected: `${name} expected` };
}

export function bytes(value) {
  if (!known(value)) return "–";
  const step = Math.min(4, Math.max(0, Math.floor(Math.log2(Math.max(value, 1)) / 10)));
  return `${number(value / 1024 ** step)} ${["B", "KiB", "MiB", "GiB", "TiB"][step]}`;
}

// A simulated run begins at time 0: its moments are told as seconds, others by the clock.
const SIMULATED_BELOW_S = 1e8;

export function moment(at, precise = true) {
  if (!known(at)) return "–";
  if (at < SIMULATED_BELOW_S) {
    const whole = Math.floor(at);
    const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
    const two = (n) => String(n).padStart(2, "0");
    return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
  }
  const date = new Date(at * 1e3);
  return date.toLocaleTimeString("en-GB", precise ? {} : { hour: "2-digit", minute: "2-digit" });
}

export function day(at) {
  if (!known(at) || at < SIMULATED_BELOW_S) return "simulated";
  return new Date(at * 1e3).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}
