export default function () {
const b = (function F() {}).bind(null); return [[] instanceof Object, Object.create(null) instanceof Object, 5 instanceof Number, new Number(5) instanceof Number, (() => { try { return 1 instanceof 5 } catch (e) { return e.name } })()]
}
