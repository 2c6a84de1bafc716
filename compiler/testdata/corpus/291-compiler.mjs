export default function () {
class M extends Map { get(k) { return super.get(k) ?? "none" } } const m = new M([["a", 1]]); return [m.get("a"), m.get("b"), m.size, m instanceof Map]
}
