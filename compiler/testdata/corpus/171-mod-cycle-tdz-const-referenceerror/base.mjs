import { derived } from './derived.mjs';
export const base = 10;
export const fromDerived = derived + 1;
