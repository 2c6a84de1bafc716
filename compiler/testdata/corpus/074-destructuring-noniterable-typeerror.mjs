const pairs = [[1, 2], 'ab', new Set([5, 6])];
const sums = pairs.map(([a, b]) => a + b);
export default function () {
  const good = sums.join();
  const [x, y] = { 0: 'a', 1: 'b', length: 2 };
  return [good, x, y];
}
