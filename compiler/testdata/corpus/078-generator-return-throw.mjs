const log = [];
function* g() {
  try { log.push('start'); yield 1; yield 2; } catch (e) { log.push('caught ' + e); yield 'recovered'; } finally { log.push('finally'); yield 'cleanup'; log.push('after cleanup'); }
  return 'normal';
}
const a = g();
const aSteps = [a.next(), a.return('early'), a.next(), a.next()];
const b = g();
const bSteps = [b.next(), b.throw('boom'), b.next(), b.next(), b.next()];
export default function () {
  const fresh = g();
  const unstarted = [fresh.return('x'), fresh.next()];
  let t;
  const f2 = g();
  try { f2.throw(new TypeError('unstarted')); } catch (e) { t = e.name; }
  function* override() { try { yield 1; } finally { return 'override'; } }
  const o = override();
  o.next();
  const o2 = override(); o2.next();
  const swallowed = o2.throw(new Error('gone'));
  function* running() { try { self.next(); } catch (e) { yield e.name; } }
  const self = running();
  return { aSteps, bSteps, unstarted, t, afterThrow: f2.next(), override: o.return('mine'), swallowed, running: self.next().value, log };
}
