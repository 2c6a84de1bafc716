const lcg = (seed) => () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 2 ** 32;
const mulberry = (a) => () => { a = (a + 0x6d2b79f5) | 0; let t = Math.imul(a ^ (a >>> 15), 1 | a); t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t; return ((t ^ (t >>> 14)) >>> 0) / 4294967296; };
const xorshift = (s) => () => { s ^= s << 13; s ^= s >>> 17; s ^= s << 5; return s >>> 0; };
const r = lcg(42), mb = mulberry(7), xs = xorshift(2463534242);
const firsts = [Array.from({ length: 4 }, r), Array.from({ length: 4 }, mb), Array.from({ length: 4 }, xs)];
export default function () {
  const int = (rnd, lo, hi) => lo + Math.floor(rnd() * (hi - lo + 1));
  const shuffle = (a, rnd) => { a = [...a]; for (let i = a.length - 1; i > 0; i--) { const j = int(rnd, 0, i); [a[i], a[j]] = [a[j], a[i]]; } return a; };
  const rnd = mulberry(2024), hist = new Uint16Array(6);
  for (let i = 0; i < 600; i++) hist[int(rnd, 0, 5)]++;
  const pick = (ws) => { let t = rnd() * ws.reduce((a, [, w]) => a + w, 0); for (const [v, w] of ws) if ((t -= w) < 0) return v; };
  const draws = Array.from({ length: 12 }, () => pick([['a', 5], ['b', 1], ['c', 4]])).join('');
  let inside = 0; const q = lcg(1); for (let i = 0; i < 1000; i++) { const x = q(), y = q(); if (x * x + y * y < 1) inside++; }
  return { firsts, shuffled: shuffle('abcdefgh', lcg(5)).join(''), hist: Array.from(hist), draws, inside, uuidish: 'xxxx-yx'.replace(/[xy]/g, (c) => { const v = (rnd() * 16) | 0; return (c === 'x' ? v : (v & 3) | 8).toString(16); }), big: Number((BigInt(xs()) << 21n) ^ BigInt(xs())) };
}
