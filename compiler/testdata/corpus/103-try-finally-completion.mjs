const log = [];
const fns = {
  finallyWins() { try { return 'try'; } finally { return 'finally'; } },
  snapshot() { let x = 1; try { return x; } finally { x = 2; } },
  object() { const o = { x: 1 }; try { return o; } finally { o.x = 2; } },
  swallow() { try { throw new Error('lost'); } finally { return 'swallowed'; } },
  breakOut() { for (const i of [1, 2]) { try { return i; } finally { break; } } return 'after loop'; },
  continueOut() { let n = 0; for (const i of [1, 2, 3]) { try { throw i; } catch { continue; } finally { n += i; } } return n; },
  nested() { try { try { throw 'a'; } finally { log.push('f1'); } } catch (e) { log.push(e); return e + '1'; } finally { log.push('f2'); } },
  catchThrow() { try { try { throw 'x'; } catch (e) { throw e + 'y'; } finally { log.push('fin'); } } catch (e) { return e; } },
  order() { const r = []; const f = (v) => (r.push(v), v); try { return f('ret') && r; } finally { f('fin'); } },
  labeled() { l: try { return 1; } finally { break l; } return 'labeled'; },
  overrideThrow() { try { try { throw 1; } finally { throw 2; } } catch (e) { return e; } },
};
const top = Object.values(fns).map((f) => f());
export default function () {
  const depth = (n) => { try { if (n === 0) throw new RangeError('bottom'); return depth(n - 1); } finally { log.push(n); } };
  let caught; try { depth(2); } catch (e) { caught = e.message; }
  const thrown = [null, undefined, 0, 'str', { k: 1 }, [1]].map((v) => { try { throw v; } catch (e) { return e === v; } });
  return { top, log, caught, thrown, catchScope: (() => { var e = 'outer'; try { throw 'inner'; } catch (e) { e = 'mod'; } return e; })() };
}
