const ops = [];
for (let i = 0; i < 3; ops.push(i), i++) if (i === 1) continue;
let i = 10;
const a = [i++, i++ * 2, i--, --i, i];
const weird = [1, 2, 3][1, 2], idx = [[0, 1], [2, 3]][1][0];
export default function () {
  const order = [];
  const f = (x) => (order.push(x), x);
  const r1 = f(1) + f(2) * f(3) - f(4);
  const r2 = f(2) ** f(1) ** f(3);
  let v = 1; v = v + (v = 5) * v; 
  let w = 1; w += (w = 10, w + 1);
  const o = { x: 1 }; const p = o; o.next = ((id) => id)(o.x); 
  let q = { n: 1 }, s = q; q.x = q = { n: 2 };
  const minus = 5 - -3, plus = 1 + +'2', tern = true ? false ? 1 : 2 : 3;
  return { ops, a, weird, idx, r1, r2, order, v, w, q, sx: s.x.n, minus, plus, tern, inOp: ['a' in { a: 1 }, !('b' in {}), 0 in [1], 'length' in []], assoc: [10 - 5 - 2, 2 ** 2 ** 3, 100 / 10 / 2, 1 < 2 == true, 7 & 3 == 3, (1, 2, 3), 5 % 3 * 2], vals: [(() => {})(), (() => ({}))(), [] + 1], p: p === o };
}
