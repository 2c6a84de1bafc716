export default function () {
const fs = []; for (const k in { a: 1, b: 2 }) fs.push(() => k); for (const x of [1, 2]) fs.push(() => x * 2); return fs.map((f) => f())
}
