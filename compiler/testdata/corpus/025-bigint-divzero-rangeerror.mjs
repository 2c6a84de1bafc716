const gcd = (a, b) => (b === 0n ? a : gcd(b, a % b));
const values = [12n, 18n, 30n];
const common = values.reduce(gcd);
export default function () {
  const steps = [];
  for (let d = common; ; d -= 2n) steps.push(values.map((v) => v / d));
}
