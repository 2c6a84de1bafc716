const log = [];
const say = (n, v) => (log.push(n), v);
const src = new Proxy({ a: undefined, b: 2 }, { get(t, k) { log.push('get ' + String(k)); return t[k]; }, has(t, k) { log.push('has ' + String(k)); return k in t; }, ownKeys(t) { log.push('ownKeys'); return Reflect.ownKeys(t); } });
const { [say('k1', 'a')]: a = say('dflt', 'D'), [say('k2', 'b')]: b = say('never', 0) } = say('src', src);
export default function () {
  const target = {};
  const obj = (n) => (log.push('obj' + n), target);
  ({ a: obj(1)[say('p1', 'x')] = say('d1', 1), b: obj(2)[say('p2', 'y')] } = src);
  [obj(3).z = say('d3', 33), obj(4).w = say('d4', 44)] = [undefined, 4];
  const { b: skip, ...rest } = src;
  const arr = [];
  arr[say('idx', 0)] = say('rhs', 'r');
  obj(5)[say('key', 'q')] = say('val', 'v');
  return { a, b, target, rest, arr, log };
}
