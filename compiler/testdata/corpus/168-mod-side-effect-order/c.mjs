import { log } from './log.mjs';
log.push('c body ' + typeof hoisted);
export const c = hoisted();
function hoisted() { return log.push('c hoisted'); }
