const log = [];
const T = (n) => (log.push(n), true), F = (n) => (log.push(n), false), V = (v) => (log.push(v), v);
const r = [T(1) && F(2) && T(3), F(4) || T(5) || T(6), T(7) && F(8) || T(9), F(10) && T(11) || F(12), !T(13) || V('v'), V(0) ?? V('skip'), V(null) ?? V('used')];
export default function () {
  let x = 0, arr = [], obj = { a: null };
  x ||= V('x1'); x &&= V('x2'); x ??= V('x3');
  arr[V(0)] ??= V('elem'); arr[0] ||= V('no');
  (obj.list ??= []).push(1); (obj.list ??= []).push(2);
  obj.a ??= obj.b ??= obj.c ||= 'chain';
  const cond = V('') ? T('yes') : V(' ') ? V('second') : V('third');
  const falsy = [0, -0, 0n, NaN, '', null, undefined, false].map((v) => v || 'f'), truthy = ['0', ' ', [], {}, -1, Infinity, 'false', () => 0].map((v) => !!v);
  const count = [1, 2, 3].filter((n) => n & 1 && n > 1).length;
  if (F('a') || F('b')) log.push('bad'); else if (T('c')) log.push('elseif'); else log.push('else');
  if (0) ; else if (1) { } 
  let dangling = ''; if (true) if (false) dangling = 'inner'; else dangling = 'else binds inner';
  return { r, x, arr, obj, cond, falsy, truthy, count, dangling, log, and: [1 && 2, 0 && 2, null && 'x', 'a' && ''], bool: [true + true, true & false, true ^ true, !1 + !0] };
}
