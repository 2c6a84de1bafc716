const names = ['banana', 'Apple', 'cherry', 'apple', 'Éclair', 'eclair', '10', '9', '', 'zebra', '\u{1F600}', '\uff5e'];
const byUnit = [...names].sort();
const byFn = [...names].sort((a, b) => (a < b ? 1 : a > b ? -1 : 0));
export default function () {
  const byLength = names.toSorted((a, b) => a.length - b.length || (a < b ? -1 : 1));
  const max = names.reduce((m, n) => (n > m ? n : m));
  return {
    byUnit, byFn, byLength, max,
    mixed: [10, 9, 1, 'b', undefined, null, true, 'a', -1, undefined].sort(),
    cmp: ['a' < 'b', 'a' < 'A', 'a' < '', '2' > '12', 'é' > 'z', 'e\u0301' < 'f'],
    unchanged: names[0],
  };
}
