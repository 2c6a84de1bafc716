import * as b from './b.mjs';
import { probes } from './b.mjs';
export let aLet = 'let';
export const aConst = { v: 1 };
export var aVar = 'var';
export function aFn() { return typeof aVar; }
export class AClass { static tag = 'class'; }
export default [aLet, aVar];
export const report = [Object.keys(b), probes.length];
