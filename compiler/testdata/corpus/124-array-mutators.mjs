const a = [1, 2, 3, 4, 5, 6, 7];
const rets = [a.push(8, 9), a.pop(), a.unshift(-1, 0), a.shift(), a.push(), a.unshift()];
const cw = [[1, 2, 3, 4, 5].copyWithin(0, 3), [1, 2, 3, 4, 5].copyWithin(1, 0, 3), [1, 2, 3, 4, 5].copyWithin(-2, -4, -3), [1, 2, 3].copyWithin(5, 0)];
const fills = [Array(3).fill(0), [1, 2, 3, 4].fill('f', 1, -1), [1, 2].fill(9, 5), [1, 2, 3].fill(7, -2)];
export default function () {
  const rev = [1, , 3]; rev.reverse();
  const sharedFill = Array(2).fill([]); sharedFill[0].push('both');
  const len = [1, 2, 3]; len.length = 1; len[3] = 'd';
  const grow = []; grow.length = 3; grow.push('x');
  const like = { length: 1, 0: 'a' }; const pl = Array.prototype.push.call(like, 'b', 'c');
  const popLike = {}; const pr = Array.prototype.pop.call(popLike);
  const err = (f) => { try { return f(); } catch (e) { return e.name; } };
  return { a, rets, cw, fills, rev: [0 in rev, 1 in rev, rev[0], rev[2]], sharedFill, len: [len.length, 1 in len, len.join()], grow: [grow.length, grow.indexOf('x')], like, pl, popLike, pr, empties: [[].pop(), [].shift(), [].push(undefined)], holesCw: 1 in [1, , 3, 4].copyWithin(2, 1, 2), errs: [err(() => { [].length = -1; }), err(() => { [].length = 1.5; }), err(() => new Array(-1)), err(() => { [].length = '2'; return 'ok'; })], strIdx: (() => { const s = []; s['2'] = 1; s['01'] = 2; s[-1] = 3; s[1.5] = 4; return [s.length, Object.keys(s)]; })(), swap: (([x, y]) => [y, x])([1, 2]) };
}
