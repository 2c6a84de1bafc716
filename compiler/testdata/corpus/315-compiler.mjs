export default function () {
function* g() { try { yield 1; yield 2 } finally { yield "f" } } const i = g(); return [i.next(), i.return(5), i.next(), i.next()]
}
