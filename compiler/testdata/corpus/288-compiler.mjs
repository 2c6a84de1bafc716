export default function () {
class A { static [Symbol.hasInstance](x) { return x === 5 } } return [5 instanceof A, {} instanceof A, new A() instanceof A]
}
