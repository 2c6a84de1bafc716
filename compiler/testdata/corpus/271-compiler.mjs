export default function () {
function f() { return [1, 2].map(() => arguments[0]) } return f(7)
}
