const log = [];
const t = (n, v = n) => (log.push(n), v);
class Base {
  [t('key1', 'a')] = t('base.a');
  static [t('key2', 's')] = t('base.s');
  constructor() { log.push('base ctor'); this.init?.(); }
}
class Derived extends (t('heritage'), Base) {
  b = t('derived.b', this.a + '+b');
  fn = () => this.b;
  static { log.push('static block ' + this.s); }
  static late = t('late', this.name);
  constructor(x = t('param')) { log.push('before super'); super(t('super arg')); log.push('after ' + this.b); }
  init() { this.fromInit = typeof this.b; }
}
const d = new Derived();
export default function () {
  class Shadow extends Base { a = 'own'; init; 'quoted key' = 1; 42 = 'num'; undef; }
  const s = new Shadow();
  class Counter { static n = 0; id = ++Counter.n; self = this; }
  const ids = [new Counter().id, new Counter().id, new Counter().self.id];
  class Setter { set v(x) { log.push('setter never'); } }
  class Def extends Setter { v = 5; }
  return { log, late: Derived.late, fromInit: d.fromInit, fn: (0, d.fn)(), keys: Object.keys(d), shadow: Object.entries(s).map(([k, v]) => [k, v === undefined ? 'undef' : v]), ids, def: Object.getOwnPropertyDescriptor(new Def(), 'v') };
}
