export let total = 1;
export const add = (n) => { total += n; };
