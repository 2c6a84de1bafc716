export default function () {
const f = () => { for (const x of [1, 2]) { try { continue } finally { if (x === 2) return "out" } } }; return f()
}
