import { isEven } from './even.mjs';
export function isOdd(n) { return n === 0 ? false : isEven(n - 1); }
export const oddReady = [typeof isEven, isEven(4), isOdd(4)].join('/');
