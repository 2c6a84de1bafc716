export default function () {
const o = { __proto__: { p: 1 }, ["a" + 1]: 2, 'b c': 3, 4: 5, get d() { return this.p }, e() { return super.p } }; return [o.p, o.a1, o["b c"], o[4], o.d, o.e()]
}
