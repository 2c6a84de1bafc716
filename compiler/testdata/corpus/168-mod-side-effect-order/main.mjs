import { log } from './log.mjs';
log.push('main body 1');
import './d.mjs';
import { b } from './b.mjs';
import './a.mjs';
import './d.mjs';
const top = [...log];
log.push('main body 2');
export default function () {
  log.push('called');
  return { top, log: [...log], b };
}
