import { two, note } from './two.mjs';
export var one = 1;
export function record(s) { (log ??= []).push(s); return log.length; }
export var log;
record('one body: two=' + two + ' notes=' + note());
