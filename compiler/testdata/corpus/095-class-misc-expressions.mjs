const classes = [class {}, class Named {}, (() => class extends Array {})()];
const Expr = class Inner { who() { return Inner.name; } static [`make${1}`]() { return new Inner(); } };
let C1 = class { static v = 1; };
const Saved = C1;
C1 = null;
class Rebind { static get() { return Rebind.v; } static v = 'still'; }
const R = Rebind;
export default function () {
  const desc = Object.getOwnPropertyDescriptors(class { static m() {} n() {} static f = 1; });
  let constErr;
  const T = class Self { static poke() { Self = 1; } };
  try { T.poke(); } catch (e) { constErr = e.name; }
  class G { *[Symbol.iterator]() { yield* [1, 2]; } static *ids() { let i = 0; while (i < 2) yield 'id' + i++; } 'str method'() { return 's'; } 12() { return 'n'; } get() { return 'get'; } set() { return 'set'; } static static() { return 'ss'; } }
  const g = new G();
  return { names: classes.map((c) => c.name), who: Expr.make1().who(), saved: Saved.v, get: R.get(), desc: { m: [desc.m.enumerable, desc.m.writable], f: [desc.f.enumerable, desc.f.writable], proto: [desc.prototype.writable, desc.prototype.enumerable], keys: Object.keys(desc) }, constErr, g: [...g, ...G.ids(), g['str method'](), g[12](), g.get(), g.set(), G.static()], typeofs: [typeof class {}, typeof Expr.prototype.constructor, Expr.prototype.constructor === Expr], enumerable: (() => { const out = []; for (const k in new G()) out.push(k); return out; })(), ctorName: new (class { constructor() { this.constructor = 'own'; } })().constructor };
}
