export const zeta = 1;
export function alpha() { return 'A'; }
export class Beta { static v = 'B'; }
export default (x) => x * 21;
export const self = function () { return this; };
export let _under = null, $dollar = undefined, ä = 'umlaut';
