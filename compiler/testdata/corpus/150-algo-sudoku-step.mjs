const puzzle = '53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79';
const grid = Array.from(puzzle, (c) => (c === '.' ? 0 : +c));
const peers = grid.map((_, i) => { const r = (i / 9) | 0, c = i % 9, s = new Set(); for (let k = 0; k < 9; k++) { s.add(r * 9 + k); s.add(k * 9 + c); s.add((r - (r % 3) + ((k / 3) | 0)) * 9 + c - (c % 3) + (k % 3)); } s.delete(i); return [...s]; });
const cand = (g, i) => { let m = 0x3fe; for (const p of peers[i]) m &= ~(1 << g[p]); return m & 0x3fe; };
const bits = (m) => { const r = []; for (let b = 1; b <= 9; b++) if (m & (1 << b)) r.push(b); return r; };
const before = [2, 3, 8, 40].map((i) => bits(cand(grid, i)));
export default function () {
  const g = [...grid]; let filled = 0, passes = 0, changed;
  do { changed = false; passes++; for (let i = 0; i < 81; i++) { if (g[i]) continue; const b = bits(cand(g, i)); if (b.length === 1) { g[i] = b[0]; filled++; changed = true; } } } while (changed);
  let nodes = 0;
  const solve = (s) => { nodes++; let best = -1, bl = 10, bb; for (let i = 0; i < 81; i++) if (!s[i]) { const b = bits(cand(s, i)); if (b.length < bl) [best, bl, bb] = [i, b.length, b]; } if (best < 0) return s; for (const v of bb) { const r = solve(s.with(best, v)); if (r) return r; } return null; };
  const done = solve([...grid]);
  return { before, peerCount: new Set(peers.map((p) => p.length)).size, filled, passes, nodes, rows: Array.from({ length: 9 }, (_, r) => done.slice(r * 9, r * 9 + 9).join('')), agree: g.every((v, i) => !v || v === done[i]), impossible: solve(grid.with(2, 1)) };
}
