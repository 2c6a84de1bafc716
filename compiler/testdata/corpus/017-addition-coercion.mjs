const operands = [1, '2', true, null, undefined, [], [1, 2], {}, NaN];
const plus = operands.map((a) => operands.map((b) => a + b));
const minus = operands.map((a) => operands.map((b) => a - b));
export default function () {
  let s = 'x';
  s += 1 + 2;
  s = s + 1 + 2;
  s += [3, [4, 5]];
  let n = '5';
  n *= '2';
  n++;
  let t = '7';
  const old = t++;
  return { plus, minus, s, n, old, t, unary: [+true, -'', +'1e1', - -1, +-+1, !+[] + [] + ![]], fnLike: [[] + [], [] * 2, [4] * [5], '3' * '4', '8' / 2, 'a' - 1] };
}
