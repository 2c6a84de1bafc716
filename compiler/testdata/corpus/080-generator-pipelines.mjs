function* range(a, b = Infinity, s = 1) { for (let i = a; i < b; i += s) yield i; }
const map = (f) => function* (it) { for (const x of it) yield f(x); };
const filter = (p) => function* (it) { for (const x of it) if (p(x)) yield x; };
const take = (n) => function* (it) { if (n <= 0) return; let i = 0; for (const x of it) { yield x; if (++i >= n) return; } };
const pipe = (src, ...fs) => fs.reduce((acc, f) => f(acc), src);
const evensSquared = [...pipe(range(1), filter((n) => n % 2 === 0), map((n) => n * n), take(5))];
export default function () {
  function* zip(...its) { const iters = its.map((i) => i[Symbol.iterator]()); while (true) { const rs = iters.map((i) => i.next()); if (rs.some((r) => r.done)) return; yield rs.map((r) => r.value); } }
  function* chunk(it, n) { let buf = []; for (const x of it) { buf.push(x); if (buf.length === n) { yield buf; buf = []; } } if (buf.length) yield buf; }
  function* primes() { const seen = []; for (const n of range(2)) if (!seen.some((p) => n % p === 0)) { seen.push(n); yield n; } }
  function* combos(xs, k, at = 0, cur = []) { if (cur.length === k) yield cur.join(''); else for (let i = at; i < xs.length; i++) yield* combos(xs, k, i + 1, [...cur, xs[i]]); }
  return { evensSquared, zip: [...zip('abc', range(0), new Set([true, false, null]))], chunks: [...chunk(range(0, 7), 3)], primes: [...take(10)(primes())], combos: [...combos('abcd', 2)], none: [...take(0)(range(0))], step: [...range(0, 1, 0.25)] };
}
