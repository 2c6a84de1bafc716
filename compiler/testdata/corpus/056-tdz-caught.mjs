const probe = (f) => { try { return f(); } catch (e) { return e.name; } };
const readLate = () => late;
const before = [probe(readLate), probe(() => typeof late), probe(() => { late = 1; }), probe(() => new Later())];
let late = 'ready';
class Later { v = 1; }
const after = [probe(readLate), probe(() => typeof late), probe(() => new Later().v)];
export default function () {
  return {
    before, after,
    shadow: probe(() => { const x = 1; { const y = x; { try { x2; } catch (e) { return e.name + y; } let x2 = 1; } } }),
    selfInit: probe(() => { let a = a; return a; }),
    paramOrder: [probe(() => ((a = b, b = 1) => a)()), probe(() => ((a = 2, b = a) => a + b)()), probe(() => ((a = b, b = 1) => a)(5))],
    switchCase: probe(() => { switch (2) { case 1: let q = 1; case 2: return q; } }),
    loopHead: probe(() => { for (const n of [n]) return n; }),
    classHeritage: probe(() => { class A extends A {} }),
    destr: probe(() => { const { p = q, q = 1 } = {}; return p; }),
    closureOk: probe(() => { const f = () => w; let w = 9; return f(); }),
  };
}
