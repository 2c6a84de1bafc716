export default function () {
const curry = (f) => function c(...a) { return a.length >= f.length ? f(...a) : (...b) => c(...a, ...b) }; return curry((a, b, c) => a + b * c)(1)(2)(3)
}
