class BudgetExceeded extends Error {
  constructor(used, limit) { super(`used ${used} of ${limit}`); this.name = 'BudgetExceeded'; this.used = used; }
}
function* metered(limit) { let used = 0; while (true) { const cost = yield limit - used; used += cost ?? 1; if (used > limit) throw new BudgetExceeded(used, limit); } }
const warm = metered(3);
const first = [warm.next().value, warm.next(2).value, warm.next().value];
export default function () {
  const m = metered(10);
  const left = [m.next().value];
  for (const c of [3, 4, 2, 5]) left.push(m.next(c).value);
  return [first, left];
}
