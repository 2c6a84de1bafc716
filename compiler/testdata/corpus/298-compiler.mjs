export default function () {
const s = new Set([1, "a", NaN, -0]); return [s.has(1), s.has("1"), s.has(NaN), s.has(0), s.size, s.add(2) === s, s.delete("a"), [...s.keys()], s.clear(), s.size]
}
