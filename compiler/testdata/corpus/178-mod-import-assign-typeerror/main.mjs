import { total, add } from './state.mjs';
add(5);
const seen = [total];
export default function () {
  add(2);
  seen.push(total);
  total = 100;
  return seen;
}
