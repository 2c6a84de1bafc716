const values = [0, -0, 1, 12345, -12345, 0.00015, 1e21, 1e-21, 1.25, 1.35, 255, 5e-324];
const asDefault = values.map((v) => v.toExponential());
const asTwo = values.map((v) => v.toExponential(2));
const asZero = values.map((v) => v.toExponential(0));
let longest = '';
for (const s of [...asDefault, ...asTwo, ...asZero]) if (s.length > longest.length) longest = s;
export default function () {
  return {
    asDefault,
    asTwo,
    asZero,
    longest,
    special: [NaN.toExponential(), Infinity.toExponential(3), (-Infinity).toExponential()],
    roundTrip: values.every((v) => Number(v.toExponential()) === v),
    padded: (3).toExponential(10),
  };
}
