export const registry = new Map();
export function register(name, fn) { registry.set(name, { fn, order: registry.size }); return fn; }
class UnknownPlugin extends Error { name = 'UnknownPlugin'; }
export const resolve = (n) => { const p = registry.get(n); if (!p) throw new UnknownPlugin(`no ${n} among ${registry.size}`); return p.fn; };
