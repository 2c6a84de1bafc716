class Even { static [Symbol.hasInstance](n) { return n % 2 === 0; } }
const Duck = { [Symbol.hasInstance]: (o) => typeof o?.quack === 'function' };
class Truthy { static [Symbol.hasInstance](v) { return v; } }
const checks = [2 instanceof Even, 3 instanceof Even, { quack() {} } instanceof Duck, null instanceof Duck, 'x' instanceof Truthy, 0 instanceof Truthy];
export default function () {
  const err = (f) => { try { return f(); } catch (e) { return e.name; } };
  function F() {}
  const f = new F();
  const before = f instanceof F;
  F.prototype = {};
  const after = f instanceof F;
  F.prototype = 5;
  const Bound = Array.bind(null);
  class Sub extends Even {}
  return { checks, before, after, badProto: err(() => f instanceof F), primBadProto: err(() => 1 instanceof F), notCallable: [err(() => 1 instanceof {}), err(() => ({}) instanceof null), err(() => 1 instanceof (() => 1)), err(() => ({}) instanceof (() => 1))], bound: [] instanceof Bound, sub: 4 instanceof Sub, prims: ['s' instanceof String, new String('s') instanceof String, Object.create(null) instanceof Object], ordinary: Function.prototype[Symbol.hasInstance].call(Array, []), precedence: !({} instanceof Array) };
}
