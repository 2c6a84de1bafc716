import { store, id } from '../store.mjs';
export { store as storeSeen } from '../lib/../store.mjs';
store.get('log').push('user evaluated');
export function touch(k) { store.set(k, id()); return store.size; }
