const samples = [0, -0, 1, -1, 255, -255, 1e21, 123456789, 0.5, -0.375, 2 ** 53, NaN, Infinity, -Infinity];
const radixes = [2, 8, 10, 16, 32];
const table = [];
for (const n of samples) {
  const row = [];
  for (const r of radixes) row.push(n.toString(r));
  table.push(row);
}
const integerBases = {};
for (const r of [3, 5, 7, 12, 36]) integerBases['b' + r] = (1234567).toString(r) + '|' + (-99).toString(r);
export default function () {
  return {
    table,
    integerBases,
    back: [parseInt((987654).toString(36), 36), parseInt((-35).toString(36), 36)],
    literals: [1..toString(), 1.0.toString(2), (10).toString(undefined), 0xff.toString(2)],
  };
}
