const err = (f) => { try { f(); return 'ok'; } catch (e) { return e.name; } };
const frozen = Object.freeze({ a: 1, deep: { n: 1 }, arr: [1] });
const sealed = Object.seal({ a: 1 });
const fixed = Object.preventExtensions({ a: 1 });
frozen.deep.n = 2; frozen.arr.push(2);
sealed.a = 2; fixed.a = 3; delete fixed.a;
export default function () {
  const tests = [() => { frozen.a = 2; }, () => { frozen.b = 1; }, () => { delete frozen.a; }, () => { sealed.b = 1; }, () => { delete sealed.a; }, () => { fixed.c = 1; }, () => { Object.defineProperty(frozen, 'a', { value: 1 }); }, () => { Object.defineProperty(frozen, 'a', { value: 9 }); }, () => { Object.setPrototypeOf(fixed, null); }, () => { Object.freeze([1]).push(2); }, () => { Object.freeze([2, 1]).sort(); }, () => { Object.freeze(new Map()).set(1, 2); }];
  const deepFreeze = (o) => (Object.values(o).forEach((v) => typeof v === 'object' && deepFreeze(v)), Object.freeze(o));
  const df = deepFreeze({ x: { y: [1, { z: 1 }] } });
  const acc = Object.freeze({ _v: { n: 0 }, get v() { return this._v.n; }, set v(n) { this._v.n = n; } });
  acc.v = 42;
  return { results: tests.map(err), frozen, sealed, fixed, state: [frozen, sealed, fixed, {}, 5, 's'].map((o) => [Object.isFrozen(o), Object.isSealed(o), Object.isExtensible(o)].map(Number).join('')), deep: err(() => { df.x.y[1].z = 2; }), acc: acc.v, emptyFixed: Object.isFrozen(Object.preventExtensions({})), ret: Object.freeze(7), protoWrite: err(() => { Object.create(frozen).a = 5; }) };
}
