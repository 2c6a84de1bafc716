export default function () {
const memo = (f) => { const c = new Map(); return (n) => c.has(n) ? c.get(n) : (c.set(n, f(n)), c.get(n)) }; const fib = memo((n) => n < 2 ? n : fib(n - 1) + fib(n - 2)); return fib(60)
}
