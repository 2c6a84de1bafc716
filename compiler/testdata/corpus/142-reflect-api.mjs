const log = [];
class A { constructor(x) { this.x = x; this.nt = new.target.name; } get dbl() { return this.x * 2; } set dbl(v) { this.x = v / 2; } }
class B extends A {}
const made = Reflect.construct(A, [4], B);
const err = (f) => { try { return f(); } catch (e) { return e.name; } };
export default function () {
  const o = { a: 1, get self() { return this; } }, recv = { k: 'recv' };
  const frozen = Object.freeze({ f: 1 });
  const target = { x: 0 };
  const rs = {}; Reflect.set(A.prototype, 'dbl', 10, rs);
  const plainRecv = {}; const viaRecv = Reflect.set({ z: 1 }, 'z', 9, plainRecv);
  return { made: [made instanceof B, made.x, made.nt], get: [Reflect.get(o, 'a'), Reflect.get(o, 'self', recv) === recv, Reflect.get([5], 0), Reflect.get(A.prototype, 'dbl', { x: 21 })], set: [Reflect.set(o, 'b', 2), Reflect.set(frozen, 'f', 2), Reflect.set([], 'length', 3), Reflect.set(o, 'self', 1), rs.x, viaRecv, plainRecv.z, Reflect.set({}, 'p', 1, 5)], has: [Reflect.has(o, 'toString'), Reflect.has(o, 'b')], del: [Reflect.deleteProperty(o, 'a'), Reflect.deleteProperty(frozen, 'f'), Reflect.deleteProperty([1], 'length')], def: [Reflect.defineProperty(target, 'y', { value: 1 }), Reflect.defineProperty(target, 'y', { value: 2 }), Reflect.defineProperty(frozen, 'n', {})], keys: Reflect.ownKeys({ b: 1, 1: 1, [Symbol('s')]: 1, a: 1 }).map(String), proto: [Reflect.getPrototypeOf([]) === Array.prototype, Reflect.setPrototypeOf({}, null), Reflect.setPrototypeOf(frozen, {}), Reflect.setPrototypeOf(frozen, Object.prototype)], ext: [Reflect.isExtensible(frozen), Reflect.preventExtensions({}), Reflect.isExtensible({})], apply: [Reflect.apply(Math.max, null, [1, 3, 2]), Reflect.apply(String.prototype.slice, 'hello', [1, 3]), Reflect.apply(function () { return this.v; }, { v: 'T' }, [])], desc: Reflect.getOwnPropertyDescriptor({ q: 1 }, 'q'), errs: [err(() => Reflect.get(1, 'a')), err(() => Reflect.apply(5)), err(() => Reflect.construct(() => 1, [])), err(() => Reflect.construct(A)), err(() => Reflect.ownKeys('s')), err(() => Reflect.apply(Math.max, null)), err(() => new Reflect())], tag: String(Reflect), superCall: Reflect.construct(B, [1]).nt };
}
