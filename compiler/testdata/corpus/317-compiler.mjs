export default function () {
const log = []; const it = { [Symbol.iterator]() { let i = 0; return { next: () => ({ done: i > 5, value: i++ }), return() { log.push("closed"); return {} } } } }; for (const x of it) if (x > 1) break; const [p] = it; return [log, p]
}
