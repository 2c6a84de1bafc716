import { SEED } from './constants.mjs';
let s = SEED >>> 0;
export const rng = () => { s = (Math.imul(s, 22695477) + 1) >>> 0; return (s >>> 8) / 2 ** 24; };
