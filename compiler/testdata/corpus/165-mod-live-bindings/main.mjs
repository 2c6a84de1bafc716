import { count, inc, history, mode, setMode, swap, alias, fn } from './counter.mjs';
import * as ns from './counter.mjs';
const before = [count, ns.count, alias];
inc(); inc(5);
const { count: snapshot } = ns;
const mid = [count, ns.count, alias, snapshot];
const read = () => count;
inc(10);
export default function () {
  const results = { before, mid, after: [count, read(), snapshot, ns.alias], mode: mode };
  setMode({ verbose: true });
  const fnBefore = fn();
  swap();
  return { ...results, newMode: mode, same: ns.mode === mode, fn: [fnBefore, fn()], history: [...history], tmpl: `${count}`, shorthand: { count } };
}
