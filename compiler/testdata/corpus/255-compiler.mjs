export default function () {
const f = (a) => (b) => (c) => a + b * c; return f(1)(2)(3) - (f)(1)(1)(1)
}
