export default function () {
const compose = (...f) => (x) => f.reduceRight((a, g) => g(a), x); return compose((x) => x + 1, (x) => x * 2, Math.abs)(-5)
}
