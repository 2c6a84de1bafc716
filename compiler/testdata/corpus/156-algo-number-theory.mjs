const sieve = (n) => { const c = new Uint8Array(n + 1), p = []; for (let i = 2; i <= n; i++) { if (c[i]) continue; p.push(i); for (let j = i * i; j <= n; j += i) c[j] = 1; } return p; };
const gcd = (a, b) => { while (b) [a, b] = [b, a % b]; return a; };
const egcd = (a, b) => { if (!b) return [a, 1, 0]; const [g, x, y] = egcd(b, a % b); return [g, y, x - Math.floor(a / b) * y]; };
const modpow = (b, e, m) => { let r = 1n; for (b %= m; e > 0n; e >>= 1n, b = (b * b) % m) if (e & 1n) r = (r * b) % m; return r; };
const primes = sieve(60);
export default function () {
  const factor = (n) => { const f = {}; for (let p = 2; p * p <= n; p++) while (n % p === 0) { f[p] = (f[p] || 0) + 1; n /= p; } if (n > 1) f[n] = (f[n] || 0) + 1; return f; };
  const millerRabin = (n) => { let d = n - 1n, s = 0; while (!(d & 1n)) { d >>= 1n; s++; } outer: for (const a of [2n, 3n, 5n, 7n, 11n]) { if (n === a) return true; let x = modpow(a, d, n); if (x === 1n || x === n - 1n) continue; for (let i = 1; i < s; i++) if ((x = (x * x) % n) === n - 1n) continue outer; return false; } return true; };
  const roman = (n) => [[1000, 'M'], [900, 'CM'], [500, 'D'], [400, 'CD'], [100, 'C'], [90, 'XC'], [50, 'L'], [40, 'XL'], [10, 'X'], [9, 'IX'], [5, 'V'], [4, 'IV'], [1, 'I']].reduce((s, [v, r]) => { while (n >= v) { s += r; n -= v; } return s; }, '');
  const isqrt = (n) => { let x = n, y = (x + 1n) >> 1n; while (y < x) { x = y; y = (x + n / x) >> 1n; } return x; };
  const catalan = [1]; for (let n = 0; n < 9; n++) catalan.push(catalan[n] * (4 * n + 2) / (n + 2));
  return { primes, gcd: [gcd(48, 36), gcd(17, 5), gcd(0, 9)], egcd: egcd(240, 46), pow: [modpow(2n, 100n, 1000007n), modpow(3n, 10n ** 18n, 998244353n)], factor: [360, 97, 1001, 2 ** 31 - 1].map(factor), mr: [561n, 1000000007n, 2n ** 61n - 1n, 2n ** 61n + 1n].map(millerRabin), roman: [4, 1994, 2024, 3999].map(roman), isqrt: isqrt(2n * 10n ** 40n), catalan, digits: [...String(2n ** 89n)].reduce((s, d) => s + +d, 0), perfect: [6, 28, 496, 500].map((n) => { let s = 1; for (let i = 2; i * i <= n; i++) if (n % i === 0) s += i + (i * i === n ? 0 : n / i); return s === n; }), luhn: ['4539578763621486', '1234567812345678'].map((s) => [...s].reverse().reduce((t, d, i) => t + (i % 2 ? (d * 2 > 9 ? d * 2 - 9 : d * 2) : +d), 0) % 10 === 0) };
}
