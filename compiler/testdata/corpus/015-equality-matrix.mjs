const vals = [undefined, null, false, true, 0, -0, 1, NaN, '', '0', '1', 'a', 0n, 1n, [], [0], [1], {}];
const loose = vals.map((a) => vals.map((b) => (a == b ? 1 : 0)).join(''));
const strict = vals.map((a) => vals.map((b) => (a === b ? 1 : 0)).join(''));
const same = vals.map((a) => vals.map((b) => (Object.is(a, b) ? 1 : 0)).join(''));
export default function () {
  const arr = [NaN, -0];
  return {
    loose, strict, same,
    negated: [NaN != NaN, null != undefined, 0 !== -0, '1' != 1],
    includes: [arr.includes(NaN), arr.indexOf(NaN), arr.includes(0), arr.indexOf(0)],
    keyed: [new Map([[0, 'z']]).get(-0), new Set([NaN, NaN, 0, -0]).size],
    symbols: [Symbol.for('a') === Symbol.for('a'), Symbol('a') == Symbol('a'), Object(1n) == 1n],
  };
}
