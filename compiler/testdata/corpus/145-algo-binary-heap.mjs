class Heap {
  #a = []; #less;
  constructor(less = (x, y) => x < y, items = []) { this.#less = less; for (const i of items) this.push(i); }
  get size() { return this.#a.length; }
  push(v) { const a = this.#a; let i = a.push(v) - 1; while (i > 0) { const p = (i - 1) >> 1; if (!this.#less(a[i], a[p])) break; [a[i], a[p]] = [a[p], a[i]]; i = p; } return this; }
  pop() {
    const a = this.#a; if (!a.length) return undefined;
    const top = a[0], last = a.pop(); if (!a.length) return top;
    a[0] = last;
    for (let i = 0; ; ) { let m = i; for (const c of [2 * i + 1, 2 * i + 2]) if (c < a.length && this.#less(a[c], a[m])) m = c; if (m === i) break; [a[i], a[m]] = [a[m], a[i]]; i = m; }
    return top;
  }
  *drain() { while (this.size) yield this.pop(); }
}
const sorted = [...new Heap(undefined, [5, 2, 8, 1, 9, 2, 7]).drain()];
export default function () {
  const h = new Heap((a, b) => a.pri > b.pri || (a.pri === b.pri && a.id < b.id));
  [3, 1, 3, 2].forEach((pri, id) => h.push({ pri, id }));
  const edges = { A: { B: 4, C: 1 }, B: { D: 1 }, C: { B: 2, D: 5 }, D: {} };
  const dist = { A: 0 }, q = new Heap((a, b) => a[0] < b[0], [[0, 'A']]);
  for (const [d, n] of q.drain()) if (d <= dist[n]) for (const [m, w] of Object.entries(edges[n])) if (d + w < (dist[m] ?? Infinity)) q.push([(dist[m] = d + w), m]);
  return { sorted, order: [...h.drain()].map((x) => x.pri + '#' + x.id), dist, empty: new Heap().pop() };
}
