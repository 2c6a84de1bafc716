const inputs = [0, -0, 0.5, 1.5, 2.5, 1.005, 1.45, -1.45, 123.456, 1e20, 1e21, -1e-10, 0.000001, 1000000.5];
const digits = [0, 1, 2, 7];
const grid = inputs.map((x) => digits.map((d) => x.toFixed(d)));
export default function () {
  const special = [NaN.toFixed(2), Infinity.toFixed(1), (-Infinity).toFixed(0), (0.1).toFixed(20), (0.1).toFixed(30)];
  const precedence = [-1.5.toFixed(0), (-1.5).toFixed(0), typeof -1.5.toFixed(0), +(2.345).toFixed(2)];
  const money = [19.99 * 3, 0.1 + 0.2, 10 / 3].map((v) => '$' + v.toFixed(2));
  const large = (1.23e+20).toFixed(2);
  return { grid, special, precedence, money, large, coerced: (3.14159).toFixed('3'), none: (7.89).toFixed() };
}
