class Animal {
  static kingdom = 'animalia'; static create(...a) { return new this(...a); }
  constructor(name) { this.name = name; }
  speak() { return `${this.name} makes ${this.sound()}`; }
  sound() { return 'noise'; }
  get label() { return `[${this.name}]`; }
  toString() { return 'Animal:' + this.name; }
}
class Dog extends Animal {
  static create(n) { return super.create(n + '!'); }
  sound() { return 'woof/' + super.sound(); }
  get label() { return super.label + super.speak().length; }
  arrowSuper() { return [1].map(() => super.sound())[0]; }
  setViaSuper() { super.extra = 'set on this'; return Object.hasOwn(this, 'extra'); }
  ['comp' + 'uted']() { return super['sou' + 'nd'](); }
}
class Puppy extends Dog {}
const rex = Dog.create('Rex');
export default function () {
  const p = Puppy.create('Bit');
  const chain = [];
  for (let o = p; o; o = Object.getPrototypeOf(o)) chain.push(o.constructor.name);
  return { speak: [rex.speak(), p.speak()], label: rex.label, arrow: rex.arrowSuper(), set: rex.setViaSuper(), comp: p.computed(), chain, statics: [Puppy.kingdom, Object.hasOwn(Puppy, 'kingdom'), Object.getPrototypeOf(Puppy) === Dog], str: `${p}` + [rex], inst: [p instanceof Animal, rex instanceof Puppy, Animal.prototype.isPrototypeOf(p)], own: Object.getOwnPropertyNames(Dog.prototype), missing: (() => { class Q extends Dog { m() { return super.nothing; } } return new Q('q').m(); })() };
}
