import { base } from './base.mjs';
const factor = 3;
export const derived = base * factor;
