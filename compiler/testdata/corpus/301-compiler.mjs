export default function () {
const w = new WeakMap(), k = {}; w.set(k, 5); const s = new WeakSet([k]); return [w.get(k), w.has({}), s.has(k), w.delete(k), w.has(k), (() => { try { w.set(1, 1) } catch (e) { return e.name } })()]
}
