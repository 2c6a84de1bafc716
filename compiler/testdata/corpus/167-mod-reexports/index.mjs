export * from './a.mjs';
export * from './b.mjs';
export * as shapes from './a.mjs';
export { double as renamed, double as 'string name 2', default as Main } from './b.mjs';
export const own = 'index';
export const winner = 'local beats star';
import { circle as c } from './a.mjs';
const local = [1, 2].map(c);
export { local, own as 'string name' };
