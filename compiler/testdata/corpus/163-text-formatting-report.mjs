const items = [['Widget', 4, 3.5], ['Gadget, large', 10, 12.25], ['Ünï "q"', 1, 1000]];
const cols = [15, 4, 10];
const line = (cells, pad = ' ') => '|' + cells.map((c, i) => (i ? String(c).padStart(cols[i], pad) : String(c).padEnd(cols[i], pad))).join('|') + '|';
const thousands = (n, d = 2) => { const [i, f] = n.toFixed(d).split('.'); return i.replace(/\B(?=(?:\d{3})+$)/g, ',') + (f ? '.' + f : ''); };
const table = [line(['item', 'qty', 'price']), line(['', '', ''], '-'), ...items.map(([n, q, p]) => line([n, q, thousands(p)]))];
export default function () {
  const csv = items.map((r) => r.map((c) => (/[",\n]/.test(c) ? `"${String(c).replaceAll('"', '""')}"` : c)).join()).join('\r\n');
  const parseCsv = (t) => { const rows = [[]]; let cell = '', q = false; for (let i = 0; i < t.length; i++) { const c = t[i]; if (q) { if (c === '"') { if (t[i + 1] === '"') { cell += c; i++; } else q = false; } else cell += c; } else if (c === '"') q = true; else if (c === ',') { rows.at(-1).push(cell); cell = ''; } else if (c === '\n') { rows.at(-1).push(cell); cell = ''; rows.push([]); } else if (c !== '\r') cell += c; } rows.at(-1).push(cell); return rows; };
  const wrap = (s, w) => s.split(' ').reduce((ls, x) => ((ls.at(-1) + ' ' + x).trim().length <= w ? [...ls.slice(0, -1), (ls.at(-1) + ' ' + x).trim()] : [...ls, x]), ['']);
  const plural = (n, w) => `${n} ${w}${n === 1 ? '' : 's'}`;
  const dur = (s) => [[86400, 'd'], [3600, 'h'], [60, 'm'], [1, 's']].reduce(([o, r], [u, l]) => [r >= u ? o + Math.floor(r / u) + l : o, r % u], ['', s])[0] || '0s';
  return { table, csv, parsed: parseCsv(csv), total: thousands(items.reduce((s, [, q, p]) => s + q * p, 0)), wrap: wrap('the quick brown fox jumps over the lazy dog', 12), plural: [0, 1, 2].map((n) => plural(n, 'row')), dur: [0, 59, 3661, 90061].map(dur), ord: [1, 2, 3, 4, 11, 12, 21, 113].map((n) => n + (['th', 'st', 'nd', 'rd'][(n % 100 >> 3) ^ 1 && n % 10] || 'th')), slug: 'Héllo,  Wörld! 2x'.normalize('NFD').replace(/[\u0300-\u036f]/g, '').toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, ''), neg: [-1234567.891, 999, 1e6].map((n) => thousands(n, 1)) };
}
