import { isOdd, oddReady } from './odd.mjs';
export function isEven(n) { return n === 0 ? true : isOdd(n - 1); }
export const evenLog = ['odd said ' + oddReady];
evenLog.push(isEven(7));
