class CycleError extends Error { constructor(path) { super(path.join(' -> ')); this.name = 'CycleError'; this.path = path; } }
const deps = { app: ['ui', 'db'], ui: ['core', 'theme'], db: ['core'], theme: [], core: ['util'], util: [] };
function topo(g) {
  const out = [], mark = new Map();
  const visit = (n, path) => { const m = mark.get(n); if (m === 'done') return; if (m === 'open') throw new CycleError([...path.slice(path.indexOf(n)), n]); mark.set(n, 'open'); for (const d of g[n] ?? []) visit(d, [...path, n]); mark.set(n, 'done'); out.push(n); };
  for (const n in g) visit(n, []);
  return out;
}
const order = topo(deps);
export default function () {
  const kahn = (g) => { const indeg = new Map(Object.keys(g).map((k) => [k, g[k].length])), out = []; let ready = [...indeg].filter(([, d]) => !d).map(([k]) => k).sort(); while (ready.length) { const n = ready.shift(); out.push(n); for (const [k, ds] of Object.entries(g)) if (ds.includes(n)) { indeg.set(k, indeg.get(k) - 1); if (!indeg.get(k)) ready.push(k); } ready.sort(); } return out; };
  let cyc; try { topo({ a: ['b'], b: ['c'], c: ['d', 'b'], d: [] }); } catch (e) { cyc = [e.name, e.message, e.path.length]; }
  const levels = order.reduce((m, n) => ({ ...m, [n]: 1 + Math.max(-1, ...deps[n].map((d) => m[d])) }), {});
  const uf = Array.from({ length: 6 }, (_, i) => i), find = (x) => (uf[x] === x ? x : (uf[x] = find(uf[x])));
  for (const [a, b] of [[0, 1], [2, 3], [1, 3]]) uf[find(a)] = find(b);
  const bfs = (g, s) => { const d = { [s]: 0 }, q = [s]; for (const n of q) for (const m of g[n]) if (!(m in d)) { d[m] = d[n] + 1; q.push(m); } return d; };
  return { order, kahn: kahn(deps), cyc, levels, comps: uf.map((_, i) => find(i)), bfs: bfs(deps, 'app') };
}
