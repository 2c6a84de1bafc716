export default function () {
function f() { return arguments.length && arguments[0] || "none" } return [f(), f(5), f(0, 1)]
}
