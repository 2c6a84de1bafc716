export default function () {
class A { static { this.x = 1 + 2 } static #p = 5; static q() { return A.#p++ + ++A.#p } } return [A.x, A.q()]
}
