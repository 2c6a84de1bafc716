export default function () {
return ((a) => a)(1 + 1) + (function () { return arguments.length + 1 })(1, 2) + (() => 3)()
}
