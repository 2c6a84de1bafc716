export let count = 0;
export { count as alias };
export const history = [];
export let mode;
export function inc(by = 1) { history.push(count); count += by; return count; }
export const setMode = (m) => { mode = m; };
export function fn() { return 'original'; }
export const swap = () => { fn = () => 'replaced'; };
mode = 'initial';
