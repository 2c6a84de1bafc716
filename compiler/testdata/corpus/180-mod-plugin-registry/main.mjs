import { registry, resolve } from './registry.mjs';
import './plugins/upper.mjs';
import './plugins/reverse.mjs';
import './plugins/count.mjs';
const names = [...registry.keys()];
export default function () {
  let missing;
  try { resolve('nope'); } catch (e) { missing = [e.name, e.message]; }
  const run = (s, ...steps) => steps.reduce((acc, n) => resolve(n)(acc), s);
  return { names, order: [...registry.values()].map((p) => p.order), out: [run('abc', 'upper', 'reverse'), run('hello', 'count'), run('aab', 'reverse', 'count')], missing };
}
