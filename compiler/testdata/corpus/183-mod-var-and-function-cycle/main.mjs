import { log } from './one.mjs';
import { two, bumpTwo } from './two.mjs';
log.push('main two=' + two);
export default function () {
  bumpTwo();
  return { log: [...log], two };
}
