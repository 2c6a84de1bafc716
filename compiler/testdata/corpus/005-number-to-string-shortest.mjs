const nums = [
  0.1, 0.2, 0.1 + 0.2, 1 / 3, 2 / 3, 100, 1e5, 123456789012345680000, 1e21, 1.5e21, 1e-6, 1e-7, 1.5e-7, 5e-324,
  1.7976931348623157e308, 4.35, 0.000001, 123e-20, 9007199254740993, -1e-7, 2 ** 31, 2 ** -10, 4294967296.5,
];
const strings = nums.map(String);
const templated = nums.map((n) => `${n}`);
export default function () {
  const keys = {};
  for (const n of [1e21, 0.1, -0, 1.0, 1e-7, 0xff]) keys[n] = true;
  return {
    strings,
    same: strings.every((s, i) => s === templated[i] && Number(s) === nums[i]),
    keys: Object.keys(keys),
    concat: '' + -0 + 0.5 + 1e300 * 10 + (0 / 0),
    json: JSON.stringify([1e21, -0, 0.1, 1e-7, NaN]),
  };
}
