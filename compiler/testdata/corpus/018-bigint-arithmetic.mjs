const a = 123456789012345678901234567890n;
const b = -987654321098765432109876543210n;
const ops = [a + b, a - b, a * b, b / a, b % a, -a, a ** 3n];
const signs = [7n / 2n, -7n / 2n, 7n / -2n, 7n % 2n, -7n % 2n, 7n % -2n];
let fact = 1n;
for (let i = 2n; i <= 30n; i++) fact *= i;
export default function () {
  return {
    ops,
    signs,
    fact,
    text: [a.toString(16), b.toString(36), (255n).toString(2), String(-0n), `${10n ** 20n}`],
    compare: [a > b, 2n == 2, 2n === 2, 0n ? 1 : 2, typeof a, [3n, 1, 2n, 10].sort().join()],
    conv: [BigInt(2 ** 60), BigInt('0xff'), BigInt(' 12 '), BigInt(''), BigInt(true), Number(2n ** 64n), parseInt('12n')],
    mixed: [1n + BigInt(2), 'v' + 5n, 5n > 4.5],
  };
}
