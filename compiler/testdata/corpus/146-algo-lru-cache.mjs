class LRU {
  #max; #map = new Map(); hits = 0; misses = 0;
  constructor(max) { this.#max = max; }
  get(k) { if (!this.#map.has(k)) { this.misses++; return undefined; } const v = this.#map.get(k); this.#map.delete(k); this.#map.set(k, v); this.hits++; return v; }
  set(k, v) { this.#map.delete(k); this.#map.set(k, v); if (this.#map.size > this.#max) this.#map.delete(this.#map.keys().next().value); return this; }
  [Symbol.iterator]() { return this.#map[Symbol.iterator](); }
  static memo(f, max, key = (...a) => a.join()) { const c = new LRU(max); return Object.assign((...a) => { const k = key(...a); let v = c.get(k); if (v === undefined) c.set(k, (v = f(...a))); return v; }, { cache: c }); }
}
const c = new LRU(2);
c.set('a', 1).set('b', 2); c.get('a'); c.set('c', 3);
const state = [[...c], c.get('b'), c.get('a')];
export default function () {
  let calls = 0;
  const mul = LRU.memo((x, y) => (calls++, x * y), 2);
  const results = [mul(2, 3), mul(2, 3), mul(4, 5), mul(1, 1), mul(2, 3), mul(1, 1)];
  return { state, results, calls, hits: mul.cache.hits, misses: mul.cache.misses, keys: [...mul.cache].map(([k]) => k) };
}
