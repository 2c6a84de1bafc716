const words = ['a', 'bcd', '', '12345678'];
const padded = words.map((w) => [w.padStart(5, '*'), w.padEnd(5, 'ab'), w.padStart(5), w.padEnd(3, ''), w.padStart(-1)]);
const rule = '-'.repeat(12);
const rows = [['id', 7], ['name', 12], ['x', 3.5]].map(([k, v]) => `|${k.padEnd(6, '.')}|${String(v).padStart(6)}|`);
export default function () {
  return {
    padded,
    table: [rule, ...rows, rule].join('\n'),
    repeat: ['ab'.repeat(0), 'ab'.repeat(2.9), ''.repeat(1e6), 'x'.repeat('3')],
    hex: [0, 10, 255].map((n) => '0x' + n.toString(16).padStart(4, '0').toUpperCase()),
    coerced: ['5'.padStart(3, 0), 'u'.padEnd(6, undefined), 'n'.padEnd(6, null)],
    long: 'abc'.padStart(11, 'xyz'),
  };
}
