function* count(from, to) { for (let i = from; i <= to; i++) yield i; return 'end'; }
const all = [...count(1, 4)];
function* lazy() { started = true; yield 1; }
let started = false;
const g0 = lazy();
const startedEarly = started;
export default function () {
  const g = count(5, 6);
  const steps = [g.next(), g.next(), g.next(), g.next()];
  function* echo() { let got = yield 'ready'; while (got !== 'stop') got = yield `echo ${got}`; return 'stopped'; }
  const e = echo();
  const talk = [e.next('lost').value, e.next('a').value, e.next('b').value, e.next('stop')];
  const fibs = [];
  for (const f of (function* () { let [a, b] = [0, 1]; for (;;) { yield a; [a, b] = [b, a + b]; } })()) { if (f > 50) break; fibs.push(f); }
  function* args() { yield arguments.length; yield* arguments; }
  const obj = { *gen() { yield this.v; }, v: 'this' };
  g0.next();
  return { all, startedEarly, started, steps, talk, fibs, args: [...args('x', 'y')], obj: [...obj.gen()], self: g[Symbol.iterator]() === g, tag: String(g), newErr: (() => { try { new count(); } catch (err) { return err.name; } })(), inst: g instanceof count };
}
