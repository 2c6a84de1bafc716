const bar = (n) => '#'.repeat(n);
const chart = [3, 1, 2].map(bar);
export default function () {
  const rest = [];
  for (let n = 2; n > -3; n--) rest.push(bar(n));
  return [chart, rest];
}
