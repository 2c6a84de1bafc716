import * as self from './main.mjs';
import { helper as h, default as again, value as v2 } from './main.mjs';
export let value = 1;
const early = [typeof h, h(1), run.name, h === helper, again === run];
let tdz;
try { self.late; } catch (e) { tdz = e.name; }
export const late = 'late';
export function helper(n) { return n + 41; }
value += helper(0);
export default function run() {
  value++;
  return { early, tdz, v2, same: self.default === run, late: self.late, keys: Object.keys(self), live: self.value === value };
}
