const base = { who: 'base', hi() { return 'hi ' + this.who; }, get tag() { return 'T:' + this.who; } };
const derived = { __proto__: base, who: 'derived', hi() { return super.hi() + '!'; }, get tag() { return super.tag + '+'; } };
const borrowed = { who: 'borrowed', hi: derived.hi };
export default function () {
  const late = { hi() { return 'late ' + super.hi(); }, who: 'late' };
  let err;
  try { late.hi(); } catch (e) { err = e.name; }
  Object.setPrototypeOf(late, base);
  const k = 'dyn';
  const o = { [k + 1]: 1, get: 1, set: 2, static: 3, new: 4, class: 5, *gen() { yield super.toString === Object.prototype.toString; }, get [k]() { return 'dget'; }, set [k](v) { this.saved = v; } };
  o.dyn = 'v';
  const dup = { a: 1, a: 2, get b() { return 1; }, b: 3, ['a']: 4 };
  const protoKey = { ['__proto__']: 'own' }, __proto__ = 'short', shorthand = { __proto__ };
  return { hi: [derived.hi(), borrowed.hi(), late.hi()], tag: derived.tag, err, o: JSON.stringify(o), keys: Object.keys(o), dyn: o.dyn, gen: [...o.gen()], dup, proto: [Object.keys(protoKey).length, Object.getPrototypeOf(protoKey) === Object.prototype, Object.hasOwn(shorthand, '__proto__'), Object.getPrototypeOf({ __proto__: null }), Object.getPrototypeOf({ __proto__: 5 }) === Object.prototype] };
}
