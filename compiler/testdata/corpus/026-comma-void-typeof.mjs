let trace = [];
const t = (x) => (trace.push(x), x);
const seq = (t(1), t(2), t(3));
const picked = [t(4), (t(5), t(6))];
export default function () {
  const results = [];
  for (let i = 0, j = 10; i < j; i += 2, j -= 3) results.push([i, j]);
  const types = [undefined, null, 1, 1n, 's', true, Symbol('q'), {}, [], () => 1, class {}, /x/, new Map()].map((v) => typeof v);
  return {
    seq, picked, trace, results, types,
    voids: [void 0, void t(7), typeof void 0, void 0 ?? 'dflt'],
    undeclared: typeof notDefinedAnywhere,
    nested: typeof typeof 1,
    negate: [!'' + 1, !!'0', !NaN, -true, ~'a'],
    condChain: [0, 5, 15].map((n) => (n < 1 ? 'zero' : n < 10 ? 'small' : 'big')),
  };
}
