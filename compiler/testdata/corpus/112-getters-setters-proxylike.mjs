const log = [];
const o = {
  _items: [], get count() { log.push('get'); return this._items.length; }, set add(v) { log.push('add'); this._items.push(v); },
  get ['dyn' + 1]() { return 'd'; }, get 'quoted name'() { return 'q'; }, get 5() { return 'five'; },
};
o.add = 'a'; o.add = 'b';
const child = Object.create(o, { _items: { value: ['own'], writable: true } });
child.add = 'c';
export default function () {
  const lazy = { get heavy() { const v = log.push('computed'); Object.defineProperty(this, 'heavy', { value: v }); return v; } };
  const twice = [lazy.heavy === lazy.heavy];
  let err; try { o.count = 5; } catch (e) { err = e.name; }
  const chain = { v: 0, set x(n) { this.v = n; return 'ignored'; } };
  const r = (chain.x = 9);
  const inc = { n: 1, get x() { return this.n; }, set x(v) { this.n = v * 10; } };
  inc.x++; inc.x += 1; const post = inc.x--;
  const { count, ...others } = o;
  const onProto = Object.create({ set only(v) { this.got = v; } }); onProto.only = 1;
  const old = {}; old.__defineGetter__('g', () => 'legacy');
  return { items: o._items, childItems: child._items, count: o.count, missingGetter: o.add, dyn: [o.dyn1, o['quoted name'], o[5]], twice, err, r, v: chain.v, inc: [inc.n, post], others: Object.keys(others), onProto: Object.entries(onProto), old: old.g, json: JSON.stringify({ get a() { return 1; } }), log };
}
