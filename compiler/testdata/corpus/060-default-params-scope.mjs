let x = 'outer';
function f(a = x, g = () => a, x2 = g()) { a = 'changed'; return [a, g(), x2]; }
function shadow(a, b = () => a) { var a; const before = a; a = 'body'; return [before, a, b()]; }
function shadowInit(a = 1, read = () => a) { var a = 2; return [a, read()]; }
export default function () {
  let calls = 0;
  const next = () => ++calls;
  const lazy = (p = next()) => p;
  const outs = [lazy(), lazy(10), lazy(undefined), lazy(null), calls];
  const self = (n, acc = n > 0 ? self(n - 1) + n : 0) => acc;
  const args = function (a = 1, b) { arguments[0] = 99; return [a, b, arguments.length, args.length]; };
  const destr = ({ p = 1, q: { r = p + 1 } = {} } = {}, [s = r] = []) => [p, r, s];
  const thisDefault = function (v = this.v) { return v; };
  return { f: [f(), f('given')], shadow: shadow(7), shadowInit: shadowInit(5), outs, self: self(4), args: [args(), args(5, 6, 7)], destr: [destr(), destr({ p: 5 }), destr({ q: { r: 0 } }, [3])], thisDefault: thisDefault.call({ v: 'ctx' }), lengths: [((a, b = 1, c) => 0).length, ((...r) => 0).length, (({ a }, [b]) => 0).length] };
}
