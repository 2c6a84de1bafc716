const log = [];
const Eventful = (B) => class extends B { #h = {}; on(e, f) { (this.#h[e] ??= []).push(f); return this; } emit(e, ...a) { return this.#h[e]?.map((f) => f.apply(this, a)) ?? []; } };
const Named = (B) => class Named extends B { constructor(n, ...r) { super(...r); this.n = n; } get title() { return `<${this.n}>`; } };
const Cmp = (B = Object) => class extends B { lt(o) { return this.valueOf() < o.valueOf(); } };
class Core { constructor(v = 0) { this.v = v; } valueOf() { return this.v; } }
class Widget extends Cmp(Named(Eventful(Core))) { constructor(...a) { super(...a); log.push(new.target.name); } }
const w = new Widget('w', 3);
w.on('x', function (k) { return this.title + k; }).on('x', (k) => k * 2);
export default function () {
  const u = new Widget('u', 5);
  Object.assign(Widget.prototype, { extra() { return this.v + 100; } });
  class Plain extends Cmp() {}
  class NullProto extends null { static make() { return Object.create(this.prototype); } hi() { return 'hi'; } }
  const Anon = Eventful(Object);
  return { log, emit: [w.emit('x', 7), w.emit('none')], lt: [w.lt(u), u.lt(w), u - w, u > w], extra: u.extra(), depth: (() => { let n = 0; for (let o = w; (o = Object.getPrototypeOf(o)); ) n++; return n; })(), plain: new Plain() instanceof Object, nul: [NullProto.make().hi(), Object.getPrototypeOf(NullProto.prototype)], names: [Anon.name, Named(Object).name, (class extends Core {}).name], dynBase: new (class extends (1 > 0 ? Core : Object) {})(9).v, own: Object.keys(w) };
}
