const letFns = [], varFns = [], whileFns = [];
for (let i = 0; i < 3; i++) letFns.push(() => i);
for (var v = 0; v < 3; v++) varFns.push(() => v);
let k = 0;
while (k < 3) { const j = k * 10; whileFns.push(() => j + k); k++; }
const mutated = [];
for (let i = 0; i < 6; i++) { mutated.push(() => i); i++; }
const bump = [];
for (let i = 0, inc = () => i++; i < 3; i++) bump.push([i, inc()]);
export default function () {
  const ofFns = [], inFns = [];
  for (const x of ['a', 'b']) ofFns.push(() => x);
  for (let key in { p: 1, q: 2 }) { inFns.push(() => key); key += '!'; }
  const shared = [];
  for (let i = 0; i < 2; i++) shared.push({ get: () => i, set: (n) => { i = n; } });
  shared[0].set(42);
  const call = (fs) => fs.map((f) => f());
  return { let: call(letFns), var: call(varFns), while: call(whileFns), mutated: call(mutated), bump, of: call(ofFns), in: call(inFns), shared: shared.map((s) => s.get()), leaked: v };
}
