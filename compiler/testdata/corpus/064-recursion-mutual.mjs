const isEven = (n) => (n === 0 ? true : isOdd(n - 1));
function isOdd(n) { return n === 0 ? false : isEven(n - 1); }
const parity = [0, 1, 7, 100].map((n) => [isEven(n), isOdd(n)]);
const ackermann = (m, n) => (m === 0 ? n + 1 : n === 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)));
const hofF = (n) => (n === 0 ? 1 : n - hofM(hofF(n - 1)));
const hofM = (n) => (n === 0 ? 0 : n - hofF(hofM(n - 1)));
export default function () {
  const hanoi = (n, a, b, c) => (n ? [...hanoi(n - 1, a, c, b), a + c, ...hanoi(n - 1, b, a, c)] : []);
  const perms = (xs) => (xs.length < 2 ? [xs] : xs.flatMap((x, i) => perms(xs.toSpliced(i, 1)).map((p) => [x, ...p])));
  const flatten = (v) => (Array.isArray(v) ? v.flatMap(flatten) : [v]);
  const collatz = function step(n, k = 0) { return n === 1 ? k : step(n % 2 ? 3 * n + 1 : n / 2, k + 1); };
  const depth = (function d(n) { return n ? 1 + d(n - 1) : 0; })(2000);
  return { parity, ack: ackermann(2, 3), hof: Array.from({ length: 12 }, (_, i) => [hofF(i), hofM(i)].join('')), hanoi: hanoi(3, 'A', 'B', 'C').join(' '), perms: perms([...'abc']).map((p) => p.join('')), flat: flatten([1, [2, [3, [[4]]]], []]), collatz: [6, 27].map((n) => collatz(n)), depth };
}
