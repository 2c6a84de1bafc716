const lev = (a, b) => { let prev = Array.from({ length: b.length + 1 }, (_, j) => j); for (let i = 1; i <= a.length; i++) { const cur = [i]; for (let j = 1; j <= b.length; j++) cur[j] = Math.min(prev[j] + 1, cur[j - 1] + 1, prev[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)); prev = cur; } return prev[b.length]; };
const pairs = [['kitten', 'sitting'], ['', 'abc'], ['same', 'same'], ['flaw', 'lawn'], ['intention', 'execution']];
const dists = pairs.map(([a, b]) => lev(a, b));
export default function () {
  const lcs = (a, b, memo = new Map()) => { const go = (i, j) => { if (i < 0 || j < 0) return ''; const k = i * 1000 + j; if (memo.has(k)) return memo.get(k); const r = a[i] === b[j] ? go(i - 1, j - 1) + a[i] : ((x, y) => (x.length >= y.length ? x : y))(go(i - 1, j), go(i, j - 1)); memo.set(k, r); return r; }; return [go(a.length - 1, b.length - 1), memo.size]; };
  const diff = (a, b) => { const [l] = lcs(a, b); let i = 0, j = 0, out = ''; for (const c of l + '\0') { while (i < a.length && a[i] !== c) out += '-' + a[i++]; while (j < b.length && b[j] !== c) out += '+' + b[j++]; if (c !== '\0') { out += c; i++; j++; } } return out; };
  const dict = ['apple', 'apply', 'ape', 'maple', 'able'];
  const fix = (w) => dict.map((d) => [lev(w, d), d]).sort(([x, p], [y, q]) => x - y || (p < q ? -1 : 1))[0];
  const pal = (s) => { let best = ''; for (let c = 0; c < 2 * s.length; c++) { let l = c >> 1, r = l + (c & 1); while (l >= 0 && r < s.length && s[l] === s[r]) l--, r++; if (r - l - 1 > best.length) best = s.slice(l + 1, r); } return best; };
  return { dists, lcs: lcs('AGGTAB', 'GXTXAYB'), diff: diff('abcdef', 'azced'), fix: ['appel', 'abl', 'x'].map(fix), pal: ['babad', 'forgeeksskeegfor', 'a', ''].map(pal), rle: 'aaabccd'.replace(/(.)\1*/g, (m, c) => c + m.length), unrle: 'a3b1c2'.replace(/(.)(\d)/g, (_, c, n) => c.repeat(n)) };
}
