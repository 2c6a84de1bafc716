const SCALE = 2 ** 10;
const BASE = { w: [0.2, 0.3, 0.5], bias: -1, act: 'relu' };
const ACT = { relu: (x) => (x > 0 ? x : 0), step: (x) => +(x >= 0), id: (x) => x, hard: (x) => Math.min(1, Math.max(0, x * 0.2 + 0.5)) };
const layers = [
  { ...BASE, n: 3 },
  { ...BASE, n: 2, act: 'hard', w: BASE.w.map((x, i) => x * (i + 1)).slice(0, 3) },
  { n: 1, act: 'step', w: Array.from({ length: 2 }, (_, i) => (i % 2 ? -1 : 1) / 4), bias: 0.125 },
].map((l, i, all) => Object.freeze({ ...l, name: `L${i}/${all.length}`, id: i }));
const quantized = layers.map(({ w }) => w.map((x) => Math.round(x * SCALE)));
const total = layers.reduce((s, { w, n }) => s + w.length * n, 0);
export default function () {
  const trace = [];
  const forward = (x) => layers.reduce((v, { w, bias, act, n }, i) => (trace.push([i, ...v]), Array.from({ length: n }, (_, k) => ACT[act](w.reduce((s, wi, i) => s + wi * (v[(i + k) % v.length] ?? 0), bias)))), x);
  const norm = (v) => { const s = v.reduce((a, b) => a + b, 0); return v.map((x) => x / s); };
  const kernel = [1, 4, 6, 4, 1]; const k2 = kernel.map((a) => kernel.map((b) => a * b)); const ks = k2.flat().reduce((a, b) => a + b);
  const ramp = Object.fromEntries(Array.from({ length: 5 }, (_, i) => [`s${i}`, +(1 / (1 + i)).toFixed(3)]));
  return { layers, quantized, total, out: [[1, 2, 3], [4, -2, 8], [0, 0, 0]].map(forward), trace, norm: norm([1, 3, 4]), ks, center: k2[2][2] / ks, ramp, packed: quantized.flat().reduce((h, q) => (Math.imul(h, 31) + q) | 0, 17) };
}
