const proto = { inherited: 1, shadowed: 'proto' };
const o = Object.create(proto, { hidden: { value: 1, enumerable: false }, shown: { value: 2, enumerable: true } });
Object.assign(o, { b: 1, 2: 'two', a: 2, 1: 'one', '-1': 'neg', '01': 'str', shadowed: 'own', [Symbol('s')]: 1 });
const keys = [];
for (const k in o) keys.push(k);
export default function () {
  const list = (v) => { const r = []; for (const k in v) r.push(k); return r; };
  const del = { a: 1, b: 2, c: 3 }; const seen = [];
  for (const k in del) { seen.push(k); delete del.b; }
  const arr = [5, , 7]; arr.extra = 'x';
  const hiddenShadow = Object.create({ h: 1, v: 2 }, { h: { value: 0, enumerable: false } });
  class K { constructor() { this.z = 1; } m() {} }
  K.prototype.p = 1;
  const target = {}; let i = 0;
  for (target['k' + i++] in { x: 1, y: 2 });
  let last; for (var last2 in 'ab') last = last2;
  for (const [first] in { xyz: 1 }) target.first = first;
  return { keys, own: Object.keys(o), names: Object.getOwnPropertyNames(o), nul: [list(null), list(undefined), list(5), list('hi')], seen, arr: list(arr), hiddenShadow: list(hiddenShadow), K: list(new K()), target, last, last2, big: list({ 4294967294: 1, 4294967295: 2, 3: 3, 1.5: 4, '-0': 5 }) };
}
