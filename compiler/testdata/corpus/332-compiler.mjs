export default function () {
class A { #p = 1; static s = A.name; get p() { return this.#p } set p(v) { this.#p = v } static of(x) { const a = new A(); a.p = x; return a } inc() { return ++this.#p + this.#p++ } } const a = A.of(5); return [a.inc(), a.p, A.s]
}
