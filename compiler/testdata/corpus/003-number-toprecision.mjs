const xs = [0, -0, 1, 123.456, 0.00001234, 1e-7, 123456789, 1e21, 99.99, 0.1, -2.5, 5e-324, 1.7976931348623157e308];
const out = [];
for (let p = 1; p <= 9; p += 2) {
  out.push(xs.map((x) => x.toPrecision(p)));
}
export default function () {
  return {
    out,
    undef: (123.456).toPrecision(undefined),
    nan: [NaN.toPrecision(3), (-Infinity).toPrecision(2)],
    exact: (0.1).toPrecision(25),
    boundary: [(999999).toPrecision(6), (999999.5).toPrecision(6), (1e6).toPrecision(6), (1e-6).toPrecision(1), (1.5e-7).toPrecision(2)],
  };
}
