const table = {};
for (const [text, radix] of [
  ['10', 2], ['10', 36], ['z', 36], ['Z', 36], ['19', 8], ['8', 8], ['0x1A', 16], ['0x1A', 10], ['0x1A', 0],
  ['1A', 16], ['-ff', 16], ['12', 1], ['12', 37], ['101', 2.9], ['077', undefined], ['1e3', 10], [' 11', 2],
]) {
  table[`${text}/${radix}`] = parseInt(text, radix);
}
export default function () {
  return {
    table,
    mapTrap: ['10', '10', '10', '10', '10'].map(parseInt),
    odd: [parseInt(0.0000005), parseInt(1e21), parseInt(null), parseInt('null', 36), parseInt([7, 8]), parseInt(15.99)],
    floats: [parseFloat('3.14abc'), parseFloat('-.5e-2x'), parseFloat('1.2.3'), parseFloat('e5'), parseFloat('0x10'), parseFloat('-Infinityx')],
    sameFn: [Number.parseInt === parseInt, Number.parseFloat === parseFloat],
  };
}
