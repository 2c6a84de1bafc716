const UNITS = /* bytes */ { B: 1, KB: 1 << 10, MB: 1 << 20, GB: 1 << 30, TB: 2 ** 40 };
const FLAGS = Object.freeze(['READ', 'WRITE', 'EXEC', 'HIDDEN'].reduce((o, k, i) => ({ ...o, [k]: 1 << i }), {}));
const ALL = Object.values(FLAGS).reduce((a, b) => a | b);
const Enum = (...names) => Object.freeze(names.reduce((e, n, i) => { e[(e[n] = i)] = n; return e; }, {}));
const Day = Enum('MON', 'TUE', 'WED');
const SIN = [0, 1, 0, -1];
const POW = Array.from({ length: 8 }, (_, i) => 3 ** i);
const PASCAL = [[1]]; while (PASCAL.length < 6) { const p = PASCAL.at(-1); PASCAL.push([1, ...p.slice(1).map((x, i) => x + p[i]), 1]); }
const LUT = new Uint8Array(16).map((_, i) => ((i * 0x0101 >> 1) ^ i) & 0xf);
const GRAY = Array.from(Array(8).keys(), (i) => (i ^ (i >> 1)).toString(2).padStart(3, '0'));
export default function () {
  const fmt = (n) => { const [u, s] = Object.entries(UNITS).findLast(([, v]) => n >= v) ?? ['B', 1]; return `${+(n / s).toFixed(2)} ${u}`; };
  const has = (m, f) => (m & f) === f; const names = (m) => Object.keys(FLAGS).filter((k) => has(m, FLAGS[k])).join('|') || 'NONE';
  const rgb = (h) => [16, 8, 0].map((s) => (h >> s) & 255); const hex = (r, g, b) => '#' + ((1 << 24) | (r << 16) | (g << 8) | b).toString(16).slice(1);
  return { sizes: [0, 512, 1536, 5e6, 2 ** 31, 2 ** 45].map(fmt), flags: [0, 3, ALL, ALL & ~FLAGS.WRITE, FLAGS.READ ^ ALL].map(names), Day, day: [Day.TUE, Day[2], Day[9]], conv: SIN.map((v, i) => v * POW[i]), PASCAL, LUT: Array.from(LUT), GRAY, rgb: [rgb(0xff8000), hex(255, 128, 0), hex(0, 0, 9)], units: Object.entries(UNITS).map(([k, v]) => k + v), frozen: Object.isFrozen(Day) };
}
