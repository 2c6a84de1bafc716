const vals = [null, undefined, true, 0, 1, '2', '10', 'b', NaN, 5n, [3], { valueOf: () => 4 }];
const lt = vals.map((a) => vals.map((b) => (a < b ? '<' : a > b ? '>' : a <= b && a >= b ? '=' : '?')).join(''));
export default function () {
  const log = [];
  const mk = (name, v) => ({ valueOf() { log.push(name); return v; } });
  const results = [mk('a', 1) < mk('b', 2), mk('c', 1) > mk('d', 2), mk('e', 3) <= mk('f', 3), mk('g', 'x') + mk('h', 1)];
  return {
    lt,
    results,
    order: log.join(''),
    strings: ['a' < 'B', 'Z' < 'a', '10' < '9', '10' < 9, 'abc' < 'abcd', '' < '0', '\ud83d\ude00' < '\uffff'],
    bigint: [2n > 1, 1n < 1.5, 2n == '2', 9007199254740993n > 9007199254740992, 1n < NaN, '12' > 9n],
    chained: [3 > 2 > 1, 1 < 2 < 3, null >= 0, null > 0, undefined == 0],
  };
}
