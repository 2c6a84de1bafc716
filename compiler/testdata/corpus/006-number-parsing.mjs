const cases = ['', ' ', '0', '-0', '+5', '  42\n', '0x1F', '0b101', '0o17', '-0x10', '1e3', '.5', '5.', '.', '1_000', 'Infinity', '-Infinity', 'infinity', '12px', '1e', '\u00a07\ufeff', '1 2'];
const rows = cases.map((c) => [Number(c), parseFloat(c), parseInt(c)]);
const coerce = [null, undefined, true, false, [], [5], [1, 2], {}, '3', [[['8']]]].map((v) => Number(v));
export default function () {
  return {
    rows,
    coerce,
    unary: [+'', +[], +{}, +'0x', +null, -'3', -'-0'],
    negZero: Object.is(Number('-0'), -0) && Object.is(parseInt('-0'), -0),
    big: [Number('1e400'), Number('-1e400'), Number('1e-400'), Number('9007199254740993')],
    fromBig: [Number(12345678901234567890n), Number('12345678901234567890')],
  };
}
