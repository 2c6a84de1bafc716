export default function () {
const t = {}; ({ x: t.a = 5, y: t["b"] = 6, ...t.rest } = { x: undefined, z: 1 }); [t["c"] = 7, t.d] = [, 8]; return t
}
