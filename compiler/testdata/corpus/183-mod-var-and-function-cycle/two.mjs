import { one, record, log } from './one.mjs';
record('two body: one=' + one);
export var two = (one ?? 10) + 1;
let notes = 0;
export const note = () => ++notes + ':' + one + ':' + log.length;
export function bumpTwo() { two *= 2; record('bumped ' + two); }
