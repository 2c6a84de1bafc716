export default function () {
function A() { return new.target === A } class B { constructor() { this.t = new.target.name } } class C extends B {} return [A(), new A() instanceof A, new C().t, (() => { function F() { return (() => new.target ? 1 : 2)() } return F() })()]
}
