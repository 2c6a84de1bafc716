export default function () {
const k = {}; const m = new Map([[k, 1], [NaN, 2], ["1", 3], [1, 4]]); return [m.get(k), m.get({}), m.get(NaN), m.get("1"), m.get(1), m.has(k), m.delete(k), m.size, [...m.values()]]
}
