import { isEven, evenLog } from './even.mjs';
import { isOdd } from './odd.mjs';
const top = [0, 1, 10, 13].map((n) => [isEven(n), isOdd(n)]);
export default function () {
  return { top, evenLog: [...evenLog], names: [isEven.name, isOdd.name], big: isEven(501) };
}
