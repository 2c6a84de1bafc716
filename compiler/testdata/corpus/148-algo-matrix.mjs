const M = (r, c, f) => Array.from({ length: r }, (_, i) => Array.from({ length: c }, (_, j) => f(i, j)));
const mul = (a, b) => a.map((row) => b[0].map((_, j) => row.reduce((s, x, k) => s + x * b[k][j], 0)));
const T = (a) => a[0].map((_, j) => a.map((r) => r[j]));
const I = (n) => M(n, n, (i, j) => +(i === j));
const mpow = (a, n) => (n === 0 ? I(a.length) : n % 2 ? mul(a, mpow(a, n - 1)) : mpow(mul(a, a), n / 2));
const det = (a) => (a.length === 1 ? a[0][0] : a[0].reduce((s, x, j) => s + (j % 2 ? -1 : 1) * x * det(a.slice(1).map((r) => r.filter((_, k) => k !== j))), 0));
const fib = mpow([[1, 1], [1, 0]], 50)[0][1];
export default function () {
  const solve = (A, b) => { const m = A.map((r, i) => [...r, b[i]]), n = m.length; for (let i = 0; i < n; i++) { let p = i; for (let r = i + 1; r < n; r++) if (Math.abs(m[r][i]) > Math.abs(m[p][i])) p = r; [m[i], m[p]] = [m[p], m[i]]; for (let r = 0; r < n; r++) { if (r === i) continue; const f = m[r][i] / m[i][i]; for (let c = i; c <= n; c++) m[r][c] -= f * m[i][c]; } } return m.map((r, i) => r[n] / r[i]); };
  const spiral = (a) => (a.length ? [...a[0], ...spiral(T(a.slice(1).length ? a.slice(1) : [[]]).reverse())] : []);
  const life = (g) => g.map((r, i) => r.map((v, j) => { let n = -v; for (let a = -1; a < 2; a++) for (let b = -1; b < 2; b++) n += g[i + a]?.[j + b] ?? 0; return +(n === 3 || (v && n === 2)); }));
  const A = M(3, 3, (i, j) => i * 3 + j + 1);
  return { fib, det: [det(A), det([[2, 1], [7, 4]]), det(M(4, 4, (i, j) => (i * 7 + j * 3) % 5))], T: T([[1, 2, 3], [4, 5, 6]]), mul: mul(A, T(A)), solve: solve([[2, 1], [1, 3]], [3, 5]), rot: T(A).map((r) => r.toReversed()), spiral: spiral(A), life: life(life([[0, 0, 0], [1, 1, 1], [0, 0, 0]])), one: life([[1, 1], [1, 0]]), trace: A.reduce((s, r, i) => s + r[i], 0), str: A.map((r) => r.join(' ')).join('\n') };
}
