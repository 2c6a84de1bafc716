const handlers = { add: (a, b) => a + b, sub: (a, b) => a - b, mul: 'not callable' };
const run = (ops, start) => ops.reduce((acc, [op, n]) => handlers[op](acc, n), start);
const fine = run([['add', 5], ['sub', 2]], 10);
export default function () {
  return [fine, run([['add', 1], ['mul', 3]], 1)];
}
