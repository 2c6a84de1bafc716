const attempt = (f) => {
  try { return ['ok', f()]; } catch (e) { return ['err', e.name, e instanceof TypeError, e instanceof RangeError]; }
};
const atTop = attempt(() => 1n + 1);
export default function () {
  return [
    atTop,
    attempt(() => +1n),
    attempt(() => 1n >>> 0n),
    attempt(() => 1n / 0n),
    attempt(() => 1n % 0n),
    attempt(() => 2n ** -1n),
    attempt(() => BigInt(1.5)),
    attempt(() => BigInt(NaN)),
    attempt(() => BigInt('1.5')),
    attempt(() => BigInt(undefined)),
    attempt(() => new BigInt(1)),
    attempt(() => Math.max(1n)),
    attempt(() => JSON.stringify({ v: 1n })),
    attempt(() => (5n).toString(37)),
    attempt(() => isNaN(1n)),
    attempt(() => Number.isInteger(1n)),
    attempt(() => -(-1n)),
    attempt(() => Object(1n) + 2n),
  ];
}
