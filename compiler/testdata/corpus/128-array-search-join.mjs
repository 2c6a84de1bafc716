const a = [1, NaN, 0, '1', null, undefined, 1, -0];
const searches = [a.indexOf(1), a.indexOf(1, 1), a.lastIndexOf(1), a.lastIndexOf(1, -3), a.indexOf(NaN), a.includes(NaN), a.includes('1', 4), a.includes(undefined), a.indexOf('1'), a.includes(-0, -1), a.indexOf(0, -1), a.lastIndexOf('x'), a.indexOf(1, 100), a.indexOf(1, -100), a.lastIndexOf(1, -100)];
const joins = [a.join(), [].join(), [null].join(), [[1, [2]], 3].join(';'), [1, 2].join(''), [1, 2].join(undefined), [1, 2].join(null), [{}].join(), [[], [[]]].join('-')];
export default function () {
  const cyc = [1]; cyc.push(cyc, 2);
  const log = []; const x = { toString() { log.push('ts'); return 'X'; } };
  const odd = [1, 2]; odd.join = () => 'custom'; const odd2 = [1]; odd2.join = 5;
  return { searches, joins, cyc: cyc.join(), xs: [x, x].join(x), log: log.length, custom: `${odd}`, fallback: String(odd2), likeJoin: Array.prototype.join.call({ length: 3, 0: 'a', 2: 'c' }, '+'), strJoin: Array.prototype.join.call('abc', '.'), concat: [[].concat(1, [2], [[3]]), [0].concat(), ['a'].concat('bc', [undefined, null])], cmp: [[1, 2] < [1, 3], [2] > 1, [10] < [9], [] == 0, [1] == 1, [1, 2] == '1,2'], entries: [...['x', 'y'].entries()].flat(), lastArgs: ((...p) => p.at(-1))(1, 2, 3), toStr: [[1, [2, [3]]].toString(), Object.prototype.toString.call([]), [1.50, -0, 1e21].toString()], fromIdxFloat: [1, 2, 3].indexOf(2, 1.9), nanFrom: [5].indexOf(5, NaN), max: Math.max(...a.filter(Number.isFinite)) };
}
