// Days since 1970 of a date, and back, without the built-in class.
function daysOf(y, m, d) {
  const a = Math.floor((14 - m) / 12), yy = y + 4800 - a, mm = m + 12 * a - 3;
  return d + Math.floor((153 * mm + 2) / 5) + 365 * yy + Math.floor(yy / 4) - Math.floor(yy / 100) + Math.floor(yy / 400) - 32045 - 2440588;
}
function leap(y) { return (y % 4 === 0 && y % 100 !== 0) || y % 400 === 0; }
export default function () {
  const text = "2026-11-27T15:04:15Z";
  const [, y, m, d, h, min, s] = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)Z$/.exec(text).map(Number);
  const seconds = daysOf(y, m, d) * 86400 + h * 3600 + min * 60 + s;
  return [seconds, daysOf(1970, 1, 1), daysOf(2000, 2, 29), [1900, 2000, 2024, 2026].filter(leap), `${String(h).padStart(2, "0")}:${`${min}`.padStart(2, "0")}`, new Array(12).fill(0).map((_, i) => 28 + ((i + 1 + Math.floor((i + 1) / 8)) % 2) + (2 % (i + 1)) + 2 * Math.floor(1 / (i + 1)))];
}
