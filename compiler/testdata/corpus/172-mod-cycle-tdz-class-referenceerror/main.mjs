import { Shape } from './shape.mjs';
import { Circle } from './circle.mjs';
const c = new Circle(2);
export default function () {
  return [c.area(), c instanceof Shape];
}
