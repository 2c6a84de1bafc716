const base = { a: 1, b: 2, nested: { n: 1 } };
const merged = { ...base, b: 3, c: 4, ...{ a: 'last' } };
const noop = { ...null, ...undefined, ...5, ...true, ...'hi', ...[9] };
export default function () {
  const log = [];
  const src = { get live() { log.push('got'); return 42; } };
  const proto = Object.create({ inherited: 1 }, { hidden: { value: 2, enumerable: false }, shown: { value: 3, enumerable: true } });
  const sym = Symbol('s');
  const withSym = { ...{ [sym]: 'sym', k: 1 } };
  const setter = { set a(v) { log.push('setter'); }, ...{ a: 5 } };
  class C { own = 1; method() {} }
  const without = ({ b, ...rest }) => rest;
  const cond = (flag) => ({ x: 1, ...(flag && { y: 2 }) });
  return { merged, noop, live: { ...src }, log, proto: { ...proto }, sym: withSym[sym], setterA: setter.a, cls: { ...new C() }, without: without(merged), cond: [cond(true), cond(false)], shallow: ({ ...base }).nested === base.nested, order: Object.keys({ z: 1, ...{ b: 1, a: 2 }, 1: 'n', z: 2 }), accessor: { ...{ get x() { return 1; } } }.x };
}
