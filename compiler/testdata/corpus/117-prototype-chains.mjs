function Base(n) { this.n = n; }
Base.prototype.get = function () { return this.n; };
Base.prototype.shared = [];
function Sub(n, m) { Base.call(this, n); this.m = m; }
Sub.prototype = Object.create(Base.prototype, { constructor: { value: Sub, writable: true, configurable: true } });
Sub.prototype.get = function () { return Base.prototype.get.call(this) + this.m; };
const s = new Sub(1, 2), b = new Base(5);
s.shared.push('leak');
export default function () {
  const dict = Object.create(null); dict.toString = 'mine'; dict.__proto__ = 'plain key';
  const swap = { x: 1 }; Object.setPrototypeOf(swap, { y: 2, get z() { return this.x + this.y; } });
  const acc = {}; acc.__proto__ = { viaProto: 1 };
  let cyc; try { const p = {}; const q = Object.create(p); Object.setPrototypeOf(p, q); } catch (e) { cyc = e.name; }
  const depth = (o) => (o === null ? 0 : 1 + depth(Object.getPrototypeOf(o)));
  const ro = Object.create(Object.defineProperty({}, 'k', { value: 1, writable: false })); let roErr; try { ro.k = 2; } catch (e) { roErr = e.name; }
  return { get: [s.get(), b.get()], shared: b.shared, own: Object.keys(s), ctor: [s.constructor === Sub, b.constructor.name, Object.keys(Sub.prototype)], inst: [s instanceof Base, Base.prototype.isPrototypeOf(s), Sub.prototype.isPrototypeOf(b)], dict: [Object.keys(dict), Object.getPrototypeOf(dict), dict.hasOwnProperty], swap: [swap.z, Object.keys(swap)], acc: [acc.viaProto, Object.keys(acc)], cyc, depths: [depth({}), depth([]), depth(s), depth(() => 1), depth(dict), depth(new (class extends Array {})())], roErr, late: (() => { Base.prototype.added = 'late'; return s.added; })(), forced: Object.getPrototypeOf(Object.setPrototypeOf([], null)), fnProto: Object.getPrototypeOf(Sub) === Function.prototype };
}
