class CycleError extends Error { name = 'CycleError'; constructor(at) { super(`cycle through ${at}`); this.at = at; } }
const sheet = { a1: () => 2, a2: (g) => g('a1') * 3, b1: (g) => g('a1') + g('a2'), c1: (g) => g('c2') + 1, c2: (g) => g('b1') + g('c1') };
function evaluate(cell, open = new Set(), memo = new Map()) {
  if (memo.has(cell)) return memo.get(cell);
  if (open.has(cell)) throw new CycleError(cell);
  open.add(cell);
  try { const v = sheet[cell]((c) => evaluate(c, open, memo)); memo.set(cell, v); return v; } finally { open.delete(cell); }
}
const fine = ['a1', 'a2', 'b1'].map((c) => evaluate(c));
export default function () {
  return [fine, evaluate('c1')];
}
