const A = 'A'.charCodeAt(0), a = 'a'.charCodeAt(0);
const shift = (s, k) => s.replace(/[a-z]/gi, (c) => {
  const base = c >= 'a' ? a : A;
  return String.fromCharCode(((c.charCodeAt(0) - base + k) % 26 + 26) % 26 + base);
});
const message = 'Hello, World! xyz';
const table = Object.fromEntries([1, 13, -1, 27, 260].map((k) => [k, shift(message, k)]));
export default function () {
  const freq = [...message.toLowerCase()].filter((c) => /[a-z]/.test(c)).reduce((m, c) => m.set(c, (m.get(c) || 0) + 1), new Map());
  return { table, round: shift(shift(message, 7), -7) === message, freq: [...freq].sort(([x, n], [y, k]) => k - n || (x < y ? -1 : 1)).slice(0, 4) };
}
