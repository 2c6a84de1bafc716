const log = [];
function* inner() { try { const x = yield 'i1'; log.push('got ' + x); yield 'i2'; return 'inner-result'; } finally { log.push('inner done'); } }
function* outer() { const r = yield* inner(); log.push(r); yield* 'ab'; yield* [1, [2]]; return r.length; }
const flat = [...outer()];
export default function () {
  const o = outer();
  const steps = [o.next(), o.next('sent'), o.return('stop')];
  const custom = { [Symbol.iterator]: () => ({ n: 0, next(v) { return { value: [this.n++, v], done: this.n > 3 }; }, throw(e) { return { value: 'handled ' + e, done: false }; }, return(v) { return { value: 'ret ' + v, done: true }; } }) };
  function* d() { try { return yield* custom; } catch (e) { return 'outer ' + e; } }
  const x = d();
  const dsteps = [x.next('lost'), x.next('p'), x.throw('err'), x.return('r')];
  function* noThrow() { try { yield* { [Symbol.iterator]: () => ({ next: () => ({ value: 1, done: false }), return() { log.push('closed'); return {}; } }) }; } catch (e) { yield e.name; } }
  const y = noThrow(); y.next();
  const tree = { v: 1, kids: [{ v: 2, kids: [{ v: 3 }] }, { v: 4 }] };
  function* walk(t, depth = 0) { yield t.v + ':' + depth; for (const k of t.kids ?? []) yield* walk(k, depth + 1); }
  return { flat, steps, dsteps, noThrow: y.throw(new Error('e')).value, tree: [...walk(tree)], log };
}
