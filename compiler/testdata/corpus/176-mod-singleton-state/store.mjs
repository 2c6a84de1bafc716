let n = 0;
export const store = new Map([['log', []]]);
export const id = () => { store.get('log').push('id' + n); return n++; };
store.get('log').push('store evaluated');
