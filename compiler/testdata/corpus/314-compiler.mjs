export default function () {
const g = function* () { let s = 0; while (s < 3) s += yield s; return s > 2 ? "end" : yield }; const i = g(); return [i.next(), i.next(1), i.next(1), i.next(1)]
}
