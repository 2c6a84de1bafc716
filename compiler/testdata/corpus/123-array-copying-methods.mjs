const base = [1, 2, 3, 4, 5];
const copies = [base.toSorted((a, b) => b - a), base.toReversed(), base.toSpliced(1, 2, 'x', 'y', 'z'), base.with(-1, 'last'), base.with(0, 0)];
const err = (f) => { try { return f(); } catch (e) { return e.name; } };
export default function () {
  const sparse = [1, , 3];
  const spl = [1, 2, 3, 4, 5];
  const removed = [spl.splice(1, 2), spl.splice(-1), spl.splice(1, 0, 'i', 'j'), spl.splice(), spl.splice(undefined)];
  return { copies, base, errs: [err(() => base.with(5, 1)), err(() => base.with(-6, 1)), err(() => base.toSorted('x'))], holes: [sparse.toSorted().length, 1 in sparse.toReversed(), 1 in sparse.with(0, 9), 1 in sparse.slice(), 1 in [...sparse]], removed, spl, spliced: [base.toSpliced(), base.toSpliced(2), base.toSpliced(-2, 1), base.toSpliced(9, 1, 'e'), base.toSpliced(1, -5, 'n')], slice: [base.slice(-2), base.slice(1, -1), base.slice(3, 1), base.slice(1.7, 3.2), base.slice('1')], at: [base.at(-1), base.at(5), base.at(-5), base.at('1'), base.at(NaN)], find: [base.findLast((x) => x < 4), base.findLastIndex((x) => x > 9), base.find((x) => x > 2), base.findIndex((x) => x === 3)], generic: Array.prototype.toSorted.call({ length: 2, 0: 'b', 1: 'a' }), genWith: Array.prototype.with.call('abc', 1, 'X') };
}
