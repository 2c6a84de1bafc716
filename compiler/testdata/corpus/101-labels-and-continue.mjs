const log = [];
outer: for (let i = 0; i < 4; i++) {
  for (let j = 0; j < 4; j++) {
    if (j === 2) continue outer;
    if (i === 2) break outer;
    log.push(`${i}${j}`);
  }
}
block: { log.push('in'); if (log.length) break block; log.push('never'); }
export default function () {
  const out = [];
  a: b: for (const x of [1, 2, 3]) { if (x === 2) continue a; out.push(x); }
  let n = 0;
  loop: do { n++; switch (n) { case 3: continue loop; case 5: break loop; default: out.push('n' + n); } } while (n < 10);
  let w = 5;
  x: while (w --> 0) { try { if (w === 3) continue x; if (w === 1) break x; out.push('w' + w); } finally { out.push('f' + w); } }
  lab: if (true) { break lab; }
  const primes = [];
  next: for (let i = 2; i < 30; i++) { for (const p of primes) if (i % p === 0) continue next; primes.push(i); }
  foo: foo2: { foo3: { break foo2; } }
  let k = 0; for (;;) { if (++k > 5) break; if (k % 2) continue; out.push(k); }
  let m = 0; do m += 2; while (m < 5); 
  return { log, out, n, w, primes, k, m, comma: (() => { let i, j; for (i = 0, j = 5; i < j; i++, j--); return [i, j]; })() };
}
