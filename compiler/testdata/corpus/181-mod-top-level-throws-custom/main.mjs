import { ok } from './ok.mjs';
import { table } from './table.mjs';
export default function () {
  return [ok, table];
}
