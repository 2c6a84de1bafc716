class Temp {
  #c = 0;
  static unit = 'C';
  get f() { return this.#c * 9 / 5 + 32; }
  set f(v) { this.#c = (v - 32) * 5 / 9; }
  get c() { return this.#c; }
  static get shout() { return this.unit + '!'; }
  static set shout(v) { this.unit = v.toLowerCase(); }
  get [Symbol.toStringTag]() { return 'Temp'; }
  get once() { Object.defineProperty(this, 'once', { value: 'cached', enumerable: true }); return 'computed'; }
}
const t = new Temp();
t.f = 212;
const c1 = t.c;
export default function () {
  let roErr;
  try { t.c = 5; } catch (e) { roErr = e.name; }
  t.f += 18;
  Temp.shout = 'KELVIN';
  class Half extends Temp { get f() { return super.f / 2; } set f(v) { super.f = v * 2; } }
  class OnlyGet extends Temp { get f() { return 'ro'; } }
  const h = new Half(); h.f = 106;
  const og = new OnlyGet(); let ogErr; try { og.f = 1; } catch (e) { ogErr = e.name; }
  const d = Object.getOwnPropertyDescriptor(Temp.prototype, 'f');
  return { c1, c: t.c, roErr, shout: Temp.shout, half: [h.f, h.c], ogErr, tag: String(t), once: [t.once, t.once, Object.keys(t)], desc: [typeof d.get, typeof d.set, d.enumerable, d.get.name, d.set.name, d.set.length], inKeys: 'f' in t, spread: { ...new Temp() } };
}
