const seen = [];
class A { constructor() { seen.push(new.target.name); } }
class B extends A { constructor() { super(); const f = () => new.target === B; seen.push(f()); } }
new A(); new B();
function Old(x) { if (!new.target) return new Old(x); this.x = x; this.sub = new.target !== Old; }
class Shape { constructor() { if (new.target === Shape) throw new TypeError('abstract'); } }
export default function () {
  class Sq extends Shape {}
  const err = (f) => { try { return f(); } catch (e) { return [e.name, e.message]; } };
  class OldSub extends Old {}
  const refl = Reflect.construct(Old, [7], B);
  class RetObj { constructor(o) { return o; } }
  class Stamp extends RetObj { #p = 'stamped'; static has(o) { return #p in o; } }
  const plain = {}; new Stamp(plain);
  class Prim { constructor() { this.k = 1; return 5; } }
  return { seen, old: [Old(1).x, new Old(2).sub, new OldSub(3).sub], abstract: err(() => new Shape()), sq: err(() => new Sq() instanceof Shape), refl: [refl instanceof B, refl.x, refl.sub], stamp: [Stamp.has(plain), Stamp.has({})], prim: new Prim().k, callClass: err(() => A())[0], derivedRet: err(() => { class D extends A { constructor() { return 1; } } return new D(); })[0], noSuper: err(() => { class D extends A { constructor() {} } return new D(); })[0], okRet: err(() => { class D extends A { constructor() { return { ok: 1 }; } } return new D(); }), fnTarget: (function () { return new.target; })() };
}
