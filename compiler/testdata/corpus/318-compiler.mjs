export default function () {
const f = (a, { b = a, c: [d = b] = [] } = {}, ...r) => [a, b, d, r]; return [f(1), f(1, { b: 2 }), f(1, { c: [3] }, 4, 5)]
}
