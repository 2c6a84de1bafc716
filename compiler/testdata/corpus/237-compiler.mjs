export default function () {
const o = { get v() { return 1 + 1 }, ["k" + 1]: 2, m() { return this.v * 2 }, async: 1, get: 2, *g() { yield 1 + 1 } }; return [o.v, o.k1, o.m(), o.async + o.get, [...o.g()]]
}
