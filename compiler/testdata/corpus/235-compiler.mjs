export default function () {
function* g(n) { let got = yield n + 1; while (got && got < 3) got = yield got * 2; return (yield "end") || 7 }
	 const it = g(1); return [it.next(), it.next(1), it.next(2), it.next(3), it.next(0)]
}
