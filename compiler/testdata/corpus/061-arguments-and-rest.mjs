function count() { return [arguments.length, ...arguments]; }
function rest(first, ...others) { return { first, others, isArr: Array.isArray(others), n: arguments.length }; }
const top = [count(1, undefined), rest(1, 2, 3), rest()];
export default function () {
  const viaArrow = function () { return (() => arguments[0])('inner'); };
  const unmapped = function (a) { a = 2; return arguments[0]; };
  const spread = (...a) => a.length;
  const destrRest = (...[a, b = 'dflt', ...c]) => [a, b, c];
  function proto() { return [Object.prototype.toString.call(arguments), Array.isArray(arguments), typeof arguments[Symbol.iterator], Array.from(arguments, (x) => x * 2), [].slice.call(arguments, 1)]; }
  let calleeErr;
  (function () { try { arguments.callee; } catch (e) { calleeErr = e.name; } })();
  return { top, viaArrow: viaArrow('outer'), unmapped: unmapped(1), spread: spread(...'abc', ...[1, 2], ...new Set([1, 1])), destrRest: destrRest(1, undefined, 3, 4), proto: proto(1, 2, 3), calleeErr, apply: Math.max.apply(null, [1, 5, 3]), trailing: count(1, 2,), keys: (function () { return Object.keys(arguments); })('a', 'b') };
}
