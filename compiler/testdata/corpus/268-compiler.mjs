export default function () {
let f; f ??= function () {}; let g = null; g ||= () => 1; return [f.name, g.name]
}
