export default function () {
const f = function () { const g = (x) => x ?? arguments[0]; return g(null) + g(2) }; return f(10)
}
