import { report } from './a.mjs';
import { probes, later } from './b.mjs';
export const fromMain = 'main value';
const settled = later();
export default function () {
  return { report, probes, settled, again: later() };
}
