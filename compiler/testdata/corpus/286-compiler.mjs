export default function () {
const typeofs = (x) => typeof x === "object" ? x === null ? "null" : "object" : typeof x; return [null, {}, 1, "a", undefined].map(typeofs)
}
