export default function () {
function f(a, b = () => arguments.length) { return b() } return f(1, undefined, 3)
}
