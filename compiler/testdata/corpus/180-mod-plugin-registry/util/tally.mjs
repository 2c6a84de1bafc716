export const tally = (s) => Object.entries([...s].reduce((o, c) => ({ ...o, [c]: (o[c] ?? 0) + 1 }), {})).map(([c, n]) => c + n).join('');
