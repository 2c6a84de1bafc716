const topThis = this;
const obj = {
  name: 'obj',
  regular() { return this?.name; },
  arrow: () => typeof this,
  nested() { return [1].map(() => this.name)[0]; },
  lost() { return [1].map(function () { return this; })[0]; },
  withArg() { return [1].map(function () { return this.name; }, { name: 'arg' })[0]; },
};
const { regular } = obj;
export default function () {
  const bound = obj.regular.bind({ name: 'bound' });
  const rebound = bound.bind({ name: 'again' });
  function strictThis() { return typeof this; }
  function add(a, b, c) { return [this.base, a, b, c]; }
  const partial = add.bind({ base: 1 }, 2).bind(null, 3);
  function Point(x, y) { this.x = x; this.y = y; }
  const P5 = Point.bind({ ignored: true }, 5);
  const p = new P5(6);
  return { topThis, calls: [obj.regular(), regular(), (obj.regular)(), (0, obj.regular)(), obj.arrow(), obj.nested(), obj.lost(), obj.withArg()], bound: [bound(), rebound(), bound.call({ name: 'no' })], strict: [strictThis.call(5), strictThis.call(null), strictThis.call('s'), strictThis()], partial: partial(4), names: [bound.name, rebound.name, add.bind().length, partial.length], p: { ...p }, inst: [p instanceof Point, p instanceof P5, 'prototype' in P5], optCall: obj?.['regular']() };
}
