export default function () {
function f(a) { return a ? arguments[1] : arguments.length } return [f(1, 2), f(0, 2, 3)]
}
