export default function () {
class A { #n = 1 + 1; static s = 2 * 2; get n() { return this.#n } set n(v) { this.#n = v + 1 } has(o) { return #n in o } }
	 class B extends A { constructor() { super(); this.m = super.n + 1 } inc() { super.n = this.n + 1; return this } }
	 const b = new B().inc(); b.n += 5; return [b.n, b.m, A.s, b.has(b), b instanceof A]
}
