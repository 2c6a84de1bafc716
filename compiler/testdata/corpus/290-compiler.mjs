export default function () {
class A extends Array { sum() { return this.reduce((a, b) => a + b, 0) } } const a = A.from([1, 2, 3]); return [a.sum(), a.map((x) => x * 2).sum(), a instanceof A, a.length, Array.isArray(a), a.filter((x) => x > 1).constructor === A]
}
