export default function () {
class A { x = this.y ?? 1; y = 2; z = (() => this.x + this.y)(); static #c = 0; static n() { return ++A.#c } } return [{ ...new A() }, A.n(), A.n()]
}
