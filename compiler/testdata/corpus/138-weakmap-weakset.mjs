const priv = new WeakMap();
class Person { constructor(n) { priv.set(this, { n, visits: 0 }); } get name() { const p = priv.get(this); p.visits++; return p.n; } get visits() { return priv.get(this).visits; } }
const p = new Person('Ann');
const names = [p.name, p.name, p.visits];
const seen = new WeakSet();
const err = (f) => { try { return f(); } catch (e) { return e.name; } };
export default function () {
  const hasCycle = (o, path = new WeakSet()) => { if (Object(o) !== o) return false; if (path.has(o)) return true; path.add(o); const r = Object.values(o).some((v) => hasCycle(v, path)); path.delete(o); return r; };
  const shared = {}, cyc = { a: {} }; cyc.a.b = cyc;
  const cache = new WeakMap(); let computed = 0;
  const size = (o) => { if (!cache.has(o)) { computed++; cache.set(o, Object.keys(o).length); } return cache.get(o); };
  const deepClone = (o, map = new WeakMap()) => { if (Object(o) !== o) return o; if (map.has(o)) return map.get(o); const c = Array.isArray(o) ? [] : {}; map.set(o, c); for (const k of Object.keys(o)) c[k] = deepClone(o[k], map); return c; };
  const k = {}; seen.add(k);
  const cl = deepClone(cyc);
  return { names, cyc: [hasCycle(cyc), hasCycle({ x: shared, y: shared })], sizes: [size(cyc), size(cyc), size(shared), computed], clone: [cl !== cyc, cl.a.b === cl, cl.a !== cyc.a], seen: [seen.has(k), seen.has({}), seen.delete(k), seen.has(k)], errs: [err(() => new WeakMap([[1, 2]])), err(() => seen.add('s')), err(() => new WeakMap().set(null, 1)), err(() => new WeakMap().set(Symbol.for('reg'), 1))], soft: [new WeakMap().get(1), new WeakMap().has('x'), new WeakSet().delete(5)], keys: [Object.keys(p), JSON.stringify(p), new WeakMap().size, typeof priv[Symbol.iterator]], fnKey: new WeakMap([[hasCycle, 'fn']]).get(hasCycle), badThis: err(() => Object.create(p).name) };
}
