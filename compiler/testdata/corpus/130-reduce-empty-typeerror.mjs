const groups = [[1, 2, 3], [4], []];
const total = groups.map((g) => g.reduce((a, b) => a + b, 0));
export default function () {
  const maxes = groups.map((g) => g.reduce((a, b) => (a > b ? a : b)));
  return [total, maxes];
}
