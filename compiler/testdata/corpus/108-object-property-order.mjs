const o = { z: 1, 10: 'ten', b: 2, 2: 'two', [Symbol.for('s')]: 0, a: 3, '-1': 'neg', '03': 'lead' };
o[1] = 'one'; o.z = 'again'; delete o.b; o.b = 'readded';
const keys = Object.keys(o);
export default function () {
  const own = Reflect.ownKeys(o).map((k) => typeof k === 'symbol' ? k.description : k);
  const assign = Object.assign({ q: 0, 5: 'x' }, o, 'hi', null, [9]);
  const fe = Object.fromEntries([['b', 1], ['a', 2], [3, 'n'], ['b', 3]]);
  class P { y = 1; x = 2; 7 = 3; constructor() { this.w = 4; delete this.y; this.y = 5; } }
  const arr = Object.assign([1, 2], { foo: 'f', '-0': 'z' }); arr[2] = 3;
  const fnKeys = Object.getOwnPropertyNames(function f() {}).slice(0, 2);
  return { keys, own, json: JSON.stringify(o), assign: Object.entries(assign).map(String), fe, P: Object.keys(new P()), arr: Object.keys(arr), names: Object.getOwnPropertyNames('ab'), fnKeys, values: Object.values({ 2: 'b', 1: 'a', c: 'c' }), rest: (({ z, ...r }) => Object.keys(r))(o), defined: (() => { const d = { m: 1 }; Object.defineProperty(d, 'a', { get: () => 1, enumerable: true }); d.l = 2; Object.defineProperty(d, 'm', { enumerable: true, value: 3 }); return Object.keys(d); })() };
}
