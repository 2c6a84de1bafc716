export default function () {
const it = { from: 1, to: 3, [Symbol.iterator]() { let c = this.from; const t = this.to; return { next: () => c <= t ? { done: false, value: c++ } : { done: true } } } }; const [a, ...b] = it; return [a, b, Math.max(...it), [...it, ...it].length]
}
