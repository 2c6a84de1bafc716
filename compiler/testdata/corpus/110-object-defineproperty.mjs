const o = {};
Object.defineProperty(o, 'hidden', { value: 1 });
Object.defineProperties(o, { acc: { get() { return this.hidden + 1; }, enumerable: true, configurable: true }, w: { value: 'w', writable: true } });
o.w = 'changed';
const err = (f) => { try { return f(); } catch (e) { return e.name; } };
export default function () {
  const errs = [err(() => { o.hidden = 2; }), err(() => { o.acc = 1; }), err(() => { delete o.hidden; }), err(() => Object.defineProperty(o, 'x', { get() {}, value: 1 })), err(() => Object.defineProperty(o, 'hidden', { enumerable: true })), err(() => Object.defineProperty(1, 'a', {})), err(() => Object.defineProperty(o, 'y', { get: 5 })), err(() => Object.defineProperty(o, 'y', 1))];
  const kinds = (d) => d && Object.fromEntries(Object.entries(d).map(([k, v]) => [k, typeof v === 'function' ? 'fn' : v]));
  Object.defineProperty(o, 'acc', { value: 10 });
  const after = kinds(Object.getOwnPropertyDescriptor(o, 'acc'));
  const w = Object.defineProperty({ a: 1 }, 'a', { writable: false });
  const clone = Object.create(Object.getPrototypeOf(o), Object.getOwnPropertyDescriptors(o));
  const arr = [1, 2, 3]; Object.defineProperty(arr, 'length', { writable: false });
  const toggled = {}; Object.defineProperty(toggled, 't', { value: 1, writable: true }); Object.defineProperty(toggled, 't', { writable: false });
  return { errs, keys: Object.keys(o), after, a: kinds(Object.getOwnPropertyDescriptor(w, 'a')), clone: [clone.hidden, clone.acc, clone.w, Object.keys(clone)], arr: [err(() => arr.push(4)), arr.length, err(() => arr.pop())], t: kinds(Object.getOwnPropertyDescriptor(toggled, 't')), missing: kinds(Object.getOwnPropertyDescriptor(o, 'none')), prim: kinds(Object.getOwnPropertyDescriptor('abc', 0)), len: kinds(Object.getOwnPropertyDescriptor([1], 'length')) };
}
