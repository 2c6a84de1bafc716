import { base } from './base.mjs';
import { derived } from './derived.mjs';
const table = [base, derived];
export default function () {
  return table;
}
