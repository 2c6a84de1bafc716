import { log } from './log.mjs';
import './c.mjs';
log.push('a body');
export const a = log.length;
