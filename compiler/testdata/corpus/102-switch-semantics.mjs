const run = (v) => { const log = []; switch (v) { case 1: log.push('one'); case 2: log.push('two'); break; default: log.push('def'); case '3': log.push('str3'); case 4: log.push('four'); break; case NaN: log.push('nan'); } return log.join(); };
const table = [1, 2, '3', 3, 4, NaN, undefined].map(run);
const order = [];
const t = (v) => (order.push(v), v);
switch (t(2)) { case t(1): case t(2): order.push('hit'); case t(3): order.push('fall'); default: order.push('dflt'); }
export default function () {
  const grade = (s) => { switch (true) { case s >= 90: return 'A'; case s >= 80: return 'B'; default: return 'F'; } };
  const scoped = (k) => { switch (k) { case 'a': { const v = 1; return v; } case 'b': { const v = 2; return v; } } return 'none'; };
  const shared = (k) => { switch (k) { case 0: let x; x = 'zero'; return x; case 1: x = 'one'; return x; } };
  let sharedErr; try { shared(1); } catch (e) { sharedErr = e.name; }
  const nested = (a, b) => { let r = ''; switch (a) { case 1: switch (b) { case 1: r += '11'; break; default: r += '1x'; } r += '!'; break; default: r = 'x'; } return r; };
  const defFirst = (v) => { switch (v) { default: return 'd'; case 1: return 'one'; } };
  let emptyRan = 0; switch (emptyRan++) {}
  const loop = []; for (const c of 'abc') { switch (c) { case 'b': continue; } loop.push(c); }
  return { table, order, grades: [95, 85, 10].map(grade), scoped: ['a', 'b', 'c'].map(scoped), shared: shared(0), sharedErr, nested: [nested(1, 1), nested(1, 2), nested(2)], defFirst: [defFirst(1), defFirst(2)], emptyRan, loop };
}
