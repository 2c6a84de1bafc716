const log = [];
const handler = new Proxy({}, { get(_, trap) { return (...args) => { log.push(trap + (typeof args[1] === 'string' ? ':' + args[1] : '')); return Reflect[trap](...args); }; } });
const target = { a: 1, get b() { return this.a + 1; }, arr: [1] };
const p = new Proxy(target, handler);
p.c = p.a; delete p.c; 'a' in p; Object.keys(p); p.b;
const firstLog = log.splice(0);
export default function () {
  const run = (f) => { log.length = 0; let r; try { r = f(); } catch (e) { r = e.name; } return [typeof r === 'object' && r !== null ? JSON.stringify(r) : r, log.join(' ')]; };
  const tests = [() => ({ ...p }), () => Object.getPrototypeOf(p) === Object.prototype, () => p instanceof Object, () => Object.defineProperty(p, 'd', { value: 1, configurable: true }) === p, () => Object.entries(p).length, () => JSON.stringify(p), () => Object.isFrozen(p), () => p.hasOwnProperty('a'), () => Object.assign({}, p).a, () => { p.a ||= 5; p.a += 1; return p.a; }, () => p.arr.push(2), () => { const { a, ...r } = p; return r; }, () => Object.create(p).zzz, () => { Object.create(p).y = 1; return target.y; }, () => Object.preventExtensions(p) === p, () => { p.fresh = 1; }, () => Object.hasOwn(p, 'x'), () => p?.q?.r];
  const fn = new Proxy(function f(x) { return new.target ? { made: x } : x; }, handler);
  const calls = [run(() => fn(5)), run(() => new fn(6)), run(() => fn.call(null, 7)), run(() => [1, 2].map(fn)), run(() => typeof fn)];
  const arr = new Proxy([1, 2], handler);
  return { firstLog, tests: tests.map(run), calls, arr: [run(() => arr.push(3)), run(() => arr.length), run(() => Array.isArray(arr)), run(() => [...arr])] };
}
