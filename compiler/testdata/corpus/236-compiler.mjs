export default function () {
function* g() { yield* [1, 2]; const x = 1 + (yield 3); return x && (yield x) } const it = g(); it.next(); it.next(); it.next(); return [it.next(4), it.next(9)]
}
