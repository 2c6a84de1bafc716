import { log } from './log.mjs';
log.push('d body');
