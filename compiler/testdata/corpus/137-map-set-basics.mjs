const m = new Map([['a', 1], [NaN, 'nan'], [0, 'zero'], ['a', 2]]);
m.set(-0, 'negzero').set({}, 'obj').set([], 'arr');
const snapshot = [m.size, m.get(NaN), m.get(0), Object.is([...m.keys()][2], 0), m.get({}), m.has(undefined), m.delete(NaN), m.delete(NaN)];
const s = new Set([3, 1, 3, '3', 1]);
export default function () {
  const order = []; s.add(2).add(3); s.delete(1); s.add(1); s.forEach(function (v, k, self) { order.push(v, v === k, self === s, this.t); }, { t: 'T' });
  const log = []; m.forEach((v, k, map) => { log.push(typeof k + ':' + v); if (k === 'a') map.delete(0), map.set('new', 9); });
  const err = (f) => { try { return f(); } catch (e) { return e.name; } };
  const union = (a, b) => new Set([...a, ...b]), inter = (a, b) => new Set([...a].filter((x) => b.has(x)));
  const A = new Set([1, 2, 3]), B = new Set([2, 3, 4]);
  const grow = new Set([1]); let n = 0; for (const v of grow) { if (n++ < 5) { grow.delete(v); grow.add(v); } }
  const cleared = new Map([[1, 1]]); const it = cleared.keys(); cleared.clear(); cleared.set(2, 2); 
  class DMap extends Map { constructor(d, e) { super(e); this.d = d; } get(k) { return this.has(k) ? super.get(k) : this.d; } set(k, v) { return super.set(k, (v ?? 0) + 1); } }
  const dm = new DMap('dflt', [['x', 1]]);
  return { snapshot, order, log, errs: [err(() => Map()), err(() => new Map([1])), err(() => new Set(5)), err(() => new Map(null).size), err(() => Map.prototype.get.call({}, 1)), err(() => Map.prototype.size)], union: [...union(A, B)], inter: [...inter(A, B)], n, it: [...it], dm: [dm.get('x'), dm.get('q'), dm.size], ret: [new Map().set(1, 2) instanceof Map, new Set().add(1).has(1), m.clear(), m.size], entries: [...new Map(Object.entries({ p: 1, q: 2 }))], tag: [String(new Map()), String(new Set())], obj: Object.keys(new Map([['k', 1]])).length };
}
