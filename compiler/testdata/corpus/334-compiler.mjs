export default function () {
class A { a() { return "A" } static s() { return "sA" } } class B extends A { a() { return super.a() + "B" } static s() { return super.s() + "B" } get [Symbol.toStringTag]() { return "Bee" } } return [new B().a(), B.s(), String(new B())]
}
