let calls = 0;
export default (x) => { calls += x; return x ** 2; };
export const getValue = () => calls;
