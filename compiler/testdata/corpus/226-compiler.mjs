export default function () {
let s = 0; for (const x of [1, 2, 3]) s += x; for (const k in { a: 1, b: 2 }) s += k.length; return s
}
