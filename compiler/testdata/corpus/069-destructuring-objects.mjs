const config = { host: 'h', port: 80, tls: { cert: null, opts: { v: 3 } }, 'x-y': 1, 0: 'zero' };
const { host, port: p = 1, missing = 'dflt', tls: { cert = 'c', opts: { v, w = v + 1 }, opts }, 'x-y': xy, 0: zero } = config;
const key = 'port';
const { [key]: computed, [`${'ho'}st`]: h2, ...others } = config;
export default function () {
  let a, b, o = {};
  ({ a, b: o.prop, c: o['k' + 1] = 'def', ...o.rest } = { a: 1, b: 2, d: 4, e: 5 });
  [o.x, o.y] = [10, 20];
  const { length, [length - 1]: last } = 'hello';
  const { toFixed } = 5;
  const result = ({ a } = { a: 9, z: 1 });
  const { } = {};
  const getterLog = [];
  const src = { get one() { getterLog.push('one'); return undefined; }, get two() { getterLog.push('two'); return 2; } };
  const { two, one = (getterLog.push('default'), 'd') } = src;
  return { host, p, missing, cert, v, w, same: opts === config.tls.opts, xy, zero, computed, h2, others, a, b, o, length, last, fixed: toFixed === Number.prototype.toFixed, result, getterLog, two, one };
}
