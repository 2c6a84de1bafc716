import { a } from './a.mjs';
import { c } from './c.mjs';
import { log } from './log.mjs';
log.push('b body');
export const b = [a, c, log.length];
