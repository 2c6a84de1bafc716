const src = { a: 1, b: { c: 2 } };
const entries = Object.entries(src);
const mapped = Object.fromEntries(entries.map(([k, v]) => [k.toUpperCase(), typeof v]));
const inverted = Object.fromEntries(Object.entries({ x: 'p', y: 'q' }).map((e) => e.reverse()));
const err = (f) => { try { return f(); } catch (e) { return e.name; } };
export default function () {
  const proto = { hello: 'p' };
  const child = Object.create(proto, { own: { value: 1, enumerable: true } });
  const log = [];
  const target = { set x(v) { log.push('set ' + v); } };
  const src2 = Object.defineProperty({ x: 1, get y() { log.push('get y'); return 'Y'; } }, 'no', { value: 1 });
  Object.assign(target, src2, undefined, 0, 'st');
  let partial = {};
  const partialErr = err(() => Object.assign(partial, { a: 1 }, { get b() { throw new RangeError(); } }, { c: 1 }));
  return { mapped, inverted, own: [Object.hasOwn(child, 'hello'), 'hello' in child, child.hasOwnProperty('own'), Object.hasOwn('abc', 'length'), child.propertyIsEnumerable('own')], log, target: Object.keys(target), partial, partialErr, fromMap: Object.fromEntries(new Map([['k', 1]])), is: [Object.is(NaN, NaN), Object.is(0, -0), Object.is([], [])], errs: [err(() => Object.keys(null)), err(() => Object.fromEntries([1])), err(() => Object.fromEntries(5)), err(() => Object.create(1)), err(() => Object.entries())], prims: [Object.keys('ab'), Object.entries(5), Object.values('hi')], wrap: [typeof Object(1), Object(src) === src, typeof Object(null), new Object('s').length], protos: [Object.getPrototypeOf('') === String.prototype, Object.getPrototypeOf(child) === proto, proto.isPrototypeOf(child)] };
}
