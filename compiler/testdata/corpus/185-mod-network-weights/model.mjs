import * as C from './constants.mjs';
import { rng } from './rng.mjs';
import { matvec, relu } from './linalg.mjs';
const clamp = C.clampTo(-1, 1);
const weight = () => clamp(Math.floor((rng() * 2.5 - 1.25) / C.STEP) * C.STEP);
export const LAYERS = C.SIZES.slice(1).map((n, i) => Object.freeze({ w: Array.from({ length: n }, () => Array.from({ length: C.SIZES[i] }, weight)), b: Array.from({ length: n }, (_, k) => (k - 1) * C.STEP) }));
const size = LAYERS.reduce((t, { w, b }) => t + w.flat().length + b.length, 0);
export default { size, forward(x) { return LAYERS.reduce((v, { w, b }, i) => (i < LAYERS.length - 1 ? relu : (y) => y)(matvec(w, v, b)), x); } };
