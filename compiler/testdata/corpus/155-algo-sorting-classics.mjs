const data = [38, 27, 43, 3, 9, 82, 10, -5, 27, 0];
const swap = (a, i, j) => { [a[i], a[j]] = [a[j], a[i]]; };
const sorts = {
  bubble(a) { let n = a.length, s; do { s = false; for (let i = 1; i < n; i++) if (a[i - 1] > a[i]) { swap(a, i - 1, i); s = true; } n--; } while (s); return a; },
  insertion(a) { for (let i = 1; i < a.length; i++) { const x = a[i]; let j = i - 1; for (; j >= 0 && a[j] > x; j--) a[j + 1] = a[j]; a[j + 1] = x; } return a; },
  merge(a) { if (a.length < 2) return a; const m = a.length >> 1, l = this.merge(a.slice(0, m)), r = this.merge(a.slice(m)), o = []; while (l.length && r.length) o.push(l[0] <= r[0] ? l.shift() : r.shift()); return o.concat(l, r); },
  quick(a, lo = 0, hi = a.length - 1) { if (lo < hi) { const p = a[(lo + hi) >>> 1]; let i = lo, j = hi; while (i <= j) { while (a[i] < p) i++; while (a[j] > p) j--; if (i <= j) swap(a, i++, j--); } this.quick(a, lo, j); this.quick(a, i, hi); } return a; },
  counting(a) { const min = Math.min(...a), c = new Uint8Array(Math.max(...a) - min + 1); a.forEach((x) => c[x - min]++); return [...c].flatMap((n, i) => Array(n).fill(i + min)); },
  radix(a) { const off = Math.min(...a); let b = a.map((x) => x - off); for (let s = 0; s < 8; s += 2) { const bk = [[], [], [], []]; for (const x of b) bk[(x >> s) & 3].push(x); b = bk.flat(); } return b.map((x) => x + off); },
  shell(a) { for (let g = a.length >> 1; g; g >>= 1) for (let i = g; i < a.length; i++) for (let j = i; j >= g && a[j - g] > a[j]; j -= g) swap(a, j, j - g); return a; },
};
const expected = data.toSorted((a, b) => a - b).join();
export default function () {
  const bs = (a, x, lo = 0, hi = a.length) => { while (lo < hi) { const m = (lo + hi) >>> 1; a[m] < x ? (lo = m + 1) : (hi = m); } return lo; };
  const s = sorts.merge([...data]);
  return { expected, all: Object.keys(sorts).map((k) => [k, sorts[k]([...data]).join() === expected]), bs: [bs(s, 27), bs(s, -100), bs(s, 1000), bs(s, 28)], untouched: data[0] };
}
