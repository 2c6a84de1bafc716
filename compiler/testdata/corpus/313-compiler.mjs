export default function () {
const g = function* () { const x = yield 1; const y = x && (yield x); return y ?? (yield "n") }; const i = g(); return [i.next(), i.next(5), i.next(null), i.next(9)]
}
