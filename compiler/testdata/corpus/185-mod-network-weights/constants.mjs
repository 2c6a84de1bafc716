export const SIZES = [4, 5, 3];
export const SEED = 0xC0FFEE;
export const STEP = 1 / (1 << 6);
export const clampTo = (lo, hi) => (x) => Math.min(hi, Math.max(lo, x));
