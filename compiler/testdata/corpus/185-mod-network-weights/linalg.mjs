export const dot = (a, b) => { if (a.length !== b.length) throw new RangeError('shape'); let t = 0; for (let i = 0; i < a.length; i++) t += a[i] * b[i]; return t; };
export const relu = (v) => v.map((x) => (x > 0 ? x : 0));
export const argmax = (v) => v.reduce((m, x, i) => (x > v[m] ? i : m), 0);
export const matvec = (w, x, b) => w.map((row, i) => dot(row, x) + b[i]);
