const counter = (() => { let n = 0; return { inc: () => ++n, get n() { return n; } }; })();
counter.inc(); counter.inc();
let shadow = 'module';
{
  let shadow = 'block';
  { const shadow = 'inner'; counter.last = shadow; }
  counter.mid = shadow;
}
const fromBlock = (function () { try { throw 'x'; } catch (shadow) { var leaked = shadow; } return leaked + shadow; })();
export default function () {
  const stack = [];
  for (let shadow = 0; shadow < 2; shadow++) { let shadow = 'body'; stack.push(shadow); }
  const viaVoid = void (() => stack.push('void'))();
  const bang = !(function () { return stack.push('bang') > 100; })();
  const ns = new (class { #secret = 7; reveal() { return this.#secret; } })();
  try { stack.push('t'); } catch { stack.push('never'); }
  const catchPattern = (() => { try { throw { code: 4, info: ['a', 'b'] }; } catch ({ code, info: [, second] }) { return [code, second]; } })();
  return { n: counter.n, last: counter.last, mid: counter.mid, shadow, fromBlock, stack, viaVoid, bang, secret: ns.reveal(), catchPattern };
}
