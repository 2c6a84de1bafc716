const a = 5, b = 7;
const simple = `sum ${a} + ${b} = ${a + b}`;
const nested = `outer ${a > 3 ? `inner ${`deep ${b}`}` : 'none'} end`;
const multi = `line1
  line2\ttab \`tick\` \${not} $ {x} $5`;
export default function () {
  const order = [];
  const v = (n) => ({ toString() { order.push('s' + n); return 'S' + n; }, valueOf() { order.push('v' + n); return n; } });
  const conv = `${v(1)}-${v(2)}` + v(3);
  return {
    simple, nested, multi, conv, order,
    values: `${null} ${undefined} ${[1, [2, 3]]} ${{}} ${-0} ${true} ${1n}`,
    symbolErr: (() => { try { return `${Symbol('x')}`; } catch (e) { return e.name; } })(),
    objectKeyed: `${{ [Symbol.toPrimitive]: (hint) => hint }}`,
    crlf: `a${''}b${'\r\n'.length}`,
  };
}
