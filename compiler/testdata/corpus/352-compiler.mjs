export default function () {
const deep = (x) => Array.isArray(x) ? x.map(deep) : x && typeof x === "object" ? Object.fromEntries(Object.entries(x).map(([k, v]) => [k, deep(v)])) : x; const o = { a: [1, { b: null }], c: "d" }; const c = deep(o); return [c, c !== o, c.a !== o.a]
}
