function named(a, b) {}
const anon = function () {};
const arrow = (a) => a;
const o = { method() {}, get g() { return 1; }, ['comp' + 1]: () => 0, [Symbol('sym')]: function () {}, fn: class {} };
named.counter = 0;
const track = () => ++named.counter;
const objectNames = [o.method.name, Object.getOwnPropertyDescriptor(o, 'g').get.name, o.comp1.name, o[Object.getOwnPropertySymbols(o)[0]].name, o.fn.name];
export default function () {
  track(); track();
  let d1 = () => {}, d2;
  d2 = function () {};
  const { def = () => {} } = {};
  const [arrDef = class {}] = [];
  const selfRef = function inner() { try { inner = 1; } catch (e) { return [e.name, typeof inner]; } };
  const desc = Object.getOwnPropertyDescriptor(named, 'name');
  return { objectNames, counter: named.counter, names: [named.name, anon.name, arrow.name, d1.name, d2.name, def.name, arrDef.name, (() => {}).name, (class {}).name], lens: [named.length, arrow.length], desc, selfRef: selfRef(), proto: [typeof named.prototype, typeof arrow.prototype, typeof o.method.prototype, named.prototype.constructor === named], keys: Object.keys(named), newErr: [() => new arrow(), () => new o.method()].map((f) => { try { f(); } catch (e) { return e.name; } }) };
}
