export default function () {
const words = "a b a c b a".split(" "); const n = {}; for (const w of words) n[w] = (n[w] ?? 0) + 1; const m = {}; for (const w of words) { m[w] ||= 0; m[w]++ } return [n, m]
}
