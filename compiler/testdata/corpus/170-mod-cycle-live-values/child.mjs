import { parentName, family } from './parent.mjs';
export const childName = 'c';
export function describeParent(n = 1) { return parentName.repeat(n) + ':' + family.length; }
let state = 'tdz';
try { parentName; state = 'initialized'; } catch (e) { state += ' ' + e.name; }
export const early = () => state;
