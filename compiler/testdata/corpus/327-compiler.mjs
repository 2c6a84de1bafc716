export default function () {
const f = () => { try { return "try" } finally { s.push("fin") } }; const s = []; return [f(), s]
}
