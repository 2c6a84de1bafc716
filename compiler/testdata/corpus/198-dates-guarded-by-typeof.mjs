// Code that also runs where there is no clock.
const clock = typeof Date === "undefined" ? { year: () => 2026 } : { year: () => 2026, real: true };
class Season { constructor(month) { this.month = month; } get name() { return this.month >= 3 && this.month <= 5 ? "spring" : "other"; } }
export default function () {
  return [clock.year(), new Season(4).name, new Season(12).name, Math.floor(1764201600 / 86400) % 7];
}
