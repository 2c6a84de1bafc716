import { register, registry } from '../registry.mjs';
register('reverse', (s) => [...s].reverse().join(''));
if (registry.has('count')) throw new Error('wrong order');
