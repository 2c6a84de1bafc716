const [a, , b = 'B', c = a + '!', ...rest] = ['A', 'skip', undefined, null, 4, 5];
let x = 1, y = 2, z = 3;
[x, y, z] = [z, x, y];
const [[n1, [n2]], { k: [n3] }] = [[1, [2]], { k: 'xyz' }];
export default function () {
  const arr = [1, 2, 3, 4];
  [arr[0], arr[3]] = [arr[3], arr[0]];
  let i = 0;
  const t = [];
  [t[i++], t[i++], ...t[i]] = Array.isArray(t[i] = []) ? 'wxyz' : '';
  const [m = 1, [q = m] = []] = [];
  const [...[first, ...tail]] = new Set([7, 8, 9]);
  const { 0: zero, length } = ['p', 'q'];
  const swapped = Object.entries({ a: 1, b: 2 }).map(([k, v]) => [v, k]);
  const holes = ((([h = 'hole', nul = 'nul']) => [h, nul]))([, null]);
  const ret = ([x] = [5, 6]);
  return { a, b, c, rest, xyz: [x, y, z], n: [n1, n2, n3], arr, t, m, q, first, tail, zero, length, swapped, holes, ret };
}
